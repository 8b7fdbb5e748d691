//! PostgreSQL shows the behaviour every catalog must show, and its own: many writers at once, and a server that goes away.

#[path = "../../testkit/src/postgres.rs"]
#[allow(dead_code, reason = "other tests use all of it")]
mod server;

use std::{
    collections::BTreeSet,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
    thread,
    time::{Duration, Instant},
};

use server::Postgres;
use shelf_base::{Coordination, Digest, ErrorInfo, Kind, LockMode, Moment, Retry};
use shelf_catalog::{
    Accounts, Actor, Catalog, Error, Filter, PackState, Purge, Put, Record, Scope, Shelf, Standing,
    postgres::{Address, PostgresCatalog},
    sqlite::SqliteCatalog,
    suite,
};

fn open(postgres: &Postgres, schema: &str) -> PostgresCatalog {
    PostgresCatalog::open(Address::parse(&postgres.address(schema), None).unwrap()).unwrap()
}

/// A put of one document.
fn put(shelf: &str, path: &str) -> Put {
    Put {
        actor: Actor::local(),
        collection: Shelf::Named(shelf.into()),
        now: Moment::from_micros(1),
        documents: vec![suite::sample(path, &format!("text of {path}"))],
        loose: Vec::new(),
        snapshot: None,
        upload: None,
        fence: None,
        may_wait: true,
    }
}

/// The journal, which has no gap and whose seals form a chain.
fn whole_journal(catalog: &dyn Catalog) -> Vec<Record> {
    let records = catalog.journal(0, 1_000_000).unwrap();
    let mut before = Record::genesis();
    for (at, record) in records.iter().enumerate() {
        assert_eq!(record.sequence, at as u64 + 1);
        assert_eq!(record.seal, record.expected_seal(&before), "record {}", record.sequence);
        before = record.seal;
    }
    assert!(catalog.integrity().unwrap().is_empty());
    assert_eq!(catalog.audit().unwrap(), [""; 0]);
    records
}

#[test]
fn the_common_suite_in_postgres() {
    let Some(postgres) = Postgres::start() else { return };
    let count = AtomicU32::new(0);
    suite::run(|| {
        let schema = format!("suite_{}", count.fetch_add(1, Ordering::Relaxed));
        Arc::new(open(&postgres, &schema))
    });
}

#[test]
fn many_writers_leave_no_gap() {
    let Some(postgres) = Postgres::start() else { return };
    // Four openers stand for four machines: they share nothing but the database.
    let openers: Vec<PostgresCatalog> = thread::scope(|scope| {
        let opening: Vec<_> = (0..4).map(|_| scope.spawn(|| open(&postgres, "writers"))).collect();
        opening.into_iter().map(|opened| opened.join().unwrap()).collect()
    });
    thread::scope(|scope| {
        for (number, catalog) in openers.iter().enumerate() {
            for thread in 0..4 {
                scope.spawn(move || {
                    for round in 0..15 {
                        // All of them write the same content and two write the same paths: they collide where they can.
                        let path = format!("{}/{thread}/{round}", number / 2);
                        let (results, _) = catalog.put(put("shared", &path)).unwrap();
                        let seen = catalog.document(&Scope::Library, results[0].id).unwrap();
                        assert!(seen.is_some(), "who has written it sees it");
                    }
                });
            }
        }
    });
    let reader = &openers[3];
    let documents = reader.choose(&Scope::Library, &Filter::default()).unwrap();
    assert_eq!(documents.len(), 2 * 4 * 15);
    let records = whole_journal(reader);
    assert_eq!(records.len(), 1 + 2 * 4 * 15, "one record for the collection and one for each document");
}

#[test]
fn a_library_that_grows_fast_is_looked_at_by_the_planner() {
    let Some(postgres) = Postgres::start() else { return };
    let catalog = open(&postgres, "growing");
    let known = || {
        let sql = "SELECT COUNT(*) FROM pg_stats WHERE schemaname = 'growing' AND tablename = 'documents'";
        postgres.sql("growing", sql)
    };
    let add = |from: u32, to: u32| {
        let documents = (from..to).map(|number| suite::sample(&format!("{number}.md"), &number.to_string()));
        catalog.put(Put { documents: documents.collect(), ..put("first", "0.md") }).unwrap();
    };
    add(0, 500);
    assert_eq!(known(), "0", "a small library is read in any way");
    add(500, 1_500);
    // Somebody else looks, so that nobody who writes waits for it.
    let started = Instant::now();
    while known() == "0" {
        assert!(started.elapsed() < Duration::from_secs(30), "nothing is known of a library that has grown");
        thread::sleep(Duration::from_millis(50));
    }
}

#[test]
fn a_restart_in_the_middle_loses_nothing() {
    let Some(mut postgres) = Postgres::start() else { return };
    let catalog = Arc::new(open(&postgres, "restarted"));
    let stop = Arc::new(AtomicBool::new(false));
    let writers: Vec<_> = (0..4)
        .map(|thread| {
            let (catalog, stop) = (catalog.clone(), stop.clone());
            thread::spawn(move || {
                let mut acknowledged = BTreeSet::new();
                for number in 0.. {
                    if stop.load(Ordering::Relaxed) {
                        break;
                    }
                    let path = format!("{thread}/{number}");
                    match catalog.put(put("shared", &path)) {
                        Ok(_) => {
                            acknowledged.insert(path);
                        }
                        Err(error) => {
                            assert!(matches!(error, Error::Away { .. }), "{error:?}");
                            assert_eq!((error.kind(), error.retry()), (Kind::Busy, Retry::Later));
                            assert!(!error.hints().is_empty());
                        }
                    }
                }
                acknowledged
            })
        })
        .collect();
    for is_kind in [true, false] {
        thread::sleep(Duration::from_millis(400));
        if is_kind {
            postgres.stop();
        } else {
            postgres.kill();
        }
        thread::sleep(Duration::from_millis(300));
        postgres.go();
    }
    // Nobody waits for longer than a moment when the database stays away, and is told so.
    thread::sleep(Duration::from_millis(400));
    postgres.stop();
    let started = Instant::now();
    let error = catalog.sequence().unwrap_err();
    assert!(matches!(error, Error::Away { is_unsure: false, .. }), "{error:?}");
    assert!(started.elapsed() < Duration::from_secs(20));
    thread::sleep(Duration::from_secs(6));
    postgres.go();
    let until = Instant::now() + Duration::from_secs(20);
    while catalog.put(put("shared", "after")).is_err() {
        assert!(Instant::now() < until, "it comes back by itself");
    }
    stop.store(true, Ordering::Relaxed);
    for writer in writers {
        for path in writer.join().unwrap() {
            let found = catalog.named(&Scope::Library, None, &path, 1).unwrap();
            assert_eq!(found[0].version.hash, Digest::of(format!("text of {path}").as_bytes()));
        }
    }
    whole_journal(&*catalog);
}

#[test]
fn locks_are_held_by_one_and_fall_with_their_connection() {
    let Some(mut postgres) = Postgres::start() else { return };
    let catalogs = [open(&postgres, "locks"), open(&postgres, "locks"), open(&postgres, "others")];
    let [one, two, other] = catalogs.each_ref().map(PostgresCatalog::locks);
    let shared = [one.attempt("a", LockMode::Shared), one.attempt("a", LockMode::Shared)];
    let shared = shared.map(|held| held.unwrap().expect("shared"));
    let also = two.attempt("a", LockMode::Shared).unwrap().expect("shared by another process");
    for locks in [&one, &two] {
        assert!(locks.attempt("a", LockMode::Exclusive).unwrap().is_none());
    }
    assert!(other.attempt("a", LockMode::Exclusive).unwrap().is_some(), "another library");
    drop(shared);
    assert!(one.attempt("a", LockMode::Exclusive).unwrap().is_none(), "the other still holds it");
    drop(also);
    let alone = one.attempt("a", LockMode::Exclusive).unwrap().expect("alone");
    assert!(two.attempt("a", LockMode::Shared).unwrap().is_none());
    assert!(one.attempt("a", LockMode::Shared).unwrap().is_none(), "also within a process");
    assert!(alone.is_current());
    let first = alone.fence().expect("a number").number;
    postgres.kill();
    postgres.go();
    assert!(!alone.is_current(), "it went with the connection");
    let next = two.attempt("a", LockMode::Exclusive).unwrap().expect("alone");
    assert!(next.fence().expect("a number").number > first);
    drop(alone);
    assert!(next.is_current(), "what was lost releases nothing");
    assert!(one.attempt("a", LockMode::Shared).unwrap().is_none());
}

#[test]
fn what_cannot_be_used_is_refused_with_a_reason() {
    let Some(postgres) = Postgres::start() else { return };
    let address = postgres.address("refused");
    let refused = |text: &str| {
        let error = PostgresCatalog::open(Address::parse(text, None).unwrap()).map(drop).unwrap_err();
        assert!(!error.to_string().contains("SELECT"), "{error}");
        error
    };
    let error = refused(&address.replace("/postgres?", "/absent?"));
    assert!(matches!(&error, Error::Refused { hint, .. } if hint.contains("createdb")), "{error:?}");
    let error = refused(&address.replace("shelf@", "stranger@"));
    assert!(matches!(error, Error::Refused { .. }), "{error:?}");
    let error = refused("postgres://shelf@127.0.0.1:1/none");
    assert!(matches!(error, Error::Away { .. }), "{error:?}");
    postgres.sql("public", "CREATE ROLE guest LOGIN");
    let error = refused(&address.replace("shelf@", "guest@"));
    assert!(matches!(&error, Error::Refused { hint, .. } if hint.contains("CREATE SCHEMA")), "{error:?}");
    drop(open(&postgres, "refused"));
    postgres.sql("refused", "INSERT INTO migrations (version) VALUES (99)");
    assert!(matches!(refused(&address), Error::TooNew { found: 99, .. }));
}

#[test]
fn what_was_changed_behind_the_journals_back_is_noticed() {
    let Some(postgres) = Postgres::start() else { return };
    let catalog = open(&postgres, "tampered");
    suite::furnish(&catalog);
    whole_journal(&catalog);
    for (sql, what) in [
        ("UPDATE documents SET title = 'other' WHERE path = 'one'", "title"),
        ("UPDATE documents SET deleted_at = 1 WHERE path = 'tagged'", "deleted"),
        ("DELETE FROM tags WHERE tag = 'late'", "filed"),
        ("DELETE FROM snapshots", "missing"),
    ] {
        postgres.sql("tampered", sql);
        let found = catalog.audit().unwrap();
        assert!(found.iter().any(|line| line.contains(what)), "{sql}: {found:?}");
    }
    assert!(catalog.accept(&Actor::local(), Moment::from_micros(9)).unwrap() > 0);
    assert_eq!(catalog.audit().unwrap(), [""; 0]);
    postgres.sql("tampered", "UPDATE journal_head SET sequence = sequence + 1");
    assert_eq!(catalog.integrity().unwrap().len(), 1);
}

#[test]
fn text_that_the_database_cannot_hold_is_refused() {
    let Some(postgres) = Postgres::start() else { return };
    let catalog = open(&postgres, "nul");
    let error = catalog.put(put("shared", "a\0b")).unwrap_err();
    assert!(matches!(error, Error::Nul), "{error:?}");
    assert_eq!(error.kind(), Kind::Invalid);
    catalog.put(put("shared", "ab")).unwrap();
    assert!(catalog.secret("s", [1; 32]).is_ok());
}

#[test]
fn who_slept_through_the_end_of_its_lock_is_refused() {
    let Some(postgres) = Postgres::start() else { return };
    let catalogs = [open(&postgres, "fenced"), open(&postgres, "fenced")];
    let [one, two] = catalogs.each_ref().map(PostgresCatalog::locks);
    let writing = one.attempt("writers", LockMode::Shared).unwrap().expect("shared");
    let fence = writing.fence().cloned();
    assert!(two.attempt("writers", LockMode::Exclusive).unwrap().is_none());
    let fenced = |path: &str| Put { fence: fence.clone(), ..put("shared", path) };
    catalogs[0].put(fenced("in time")).unwrap();
    // The connection that holds the lock is cut; its holder has not noticed.
    let cut =
        "SELECT COUNT(pg_terminate_backend(pid)) FROM pg_stat_activity WHERE application_name = 'shelf'";
    postgres.sql("fenced", cut);
    let until = Instant::now() + Duration::from_secs(10);
    let collecting = loop {
        match two.attempt("writers", LockMode::Exclusive).unwrap() {
            Some(held) => break held,
            None => assert!(Instant::now() < until, "nobody holds it any more"),
        }
    };
    let error = catalogs[0].put(fenced("too late")).unwrap_err();
    assert!(matches!(error, Error::LockLost), "{error:?}");
    assert_eq!((error.kind(), error.retry()), (Kind::Busy, Retry::Later));
    assert!(catalogs[0].drop_loose(&[[7; 32]], fence.as_ref()).is_err());
    assert!(!writing.is_current());
    drop(writing);
    // Who holds it now may do what it must; whoever comes after it makes its own plan void.
    let purge = Purge { fence: collecting.fence().cloned(), ..Purge::default() };
    let keep = catalogs[0].version_hashes().unwrap().into_iter().map(|(hash, _)| hash).collect();
    let purge = Purge { keep, ..purge };
    catalogs[1].purge(&Actor::local(), &purge, Moment::from_micros(2)).unwrap();
    drop(collecting);
    drop(one.attempt("writers", LockMode::Exclusive).unwrap().expect("alone"));
    let error = catalogs[1].purge(&Actor::local(), &purge, Moment::from_micros(3)).unwrap_err();
    assert!(matches!(error, Error::LockLost), "{error:?}");
    whole_journal(&catalogs[1]);
}

#[test]
fn certificates_are_checked() {
    let Some(mut postgres) = Postgres::start() else { return };
    let Some((address, certificate)) = postgres.with_tls("tls") else { return };
    let trusting = format!("{address}&sslrootcert={}", certificate.display());
    let catalog = PostgresCatalog::open(Address::parse(&trusting, None).unwrap()).unwrap();
    catalog.put(put("shared", "a")).unwrap();
    let encrypted = "SELECT bool_and(ssl) FROM pg_stat_ssl s JOIN pg_stat_activity a USING (pid)
                     WHERE application_name = 'shelf'";
    assert_eq!(postgres.sql("tls", encrypted), "t");
    let suspicious = Address::parse(&format!("{address}&sslmode=require"), None).unwrap();
    let error = PostgresCatalog::open(suspicious).map(drop).unwrap_err();
    assert!(matches!(&error, Error::Refused { hint, .. } if hint.contains("sslrootcert")), "{error:?}");
}

/// A catalog moves from a file to a database and back; an attempt that is broken off is repeated, and nobody's work is
/// overwritten.
#[test]
fn a_catalog_moves_to_postgres_and_back() {
    let Some(postgres) = Postgres::start() else { return };
    let folder = tempfile::tempdir().unwrap();
    let source = SqliteCatalog::open(folder.path()).unwrap();
    for number in 0..700 {
        source.put(put("many", &format!("{number}.txt"))).unwrap();
    }
    let gone: Vec<_> = source.named(&Scope::Library, None, "699.txt", 2).unwrap();
    source.delete(&Actor::local(), &Scope::Library, &[gone[0].id], Moment::from_micros(2)).unwrap();
    let before = whole_journal(&source);
    let target = open(&postgres, "moved");
    let stopped = target.take_over(&source, &|done, _| done < 900, &|| Ok(()));
    assert!(stopped.unwrap_err().to_string().contains("stopped"));
    assert_eq!(target.sequence().unwrap(), 0, "nothing of it stays");
    // Once more, but what comes after it fails: the copy is there, and is replaced by the next attempt.
    let failed = target.take_over(&source, &|_, _| true, &|| Err(Error::Busy));
    assert!(matches!(failed, Err(Error::Busy)));
    source.put(put("many", "later.txt")).unwrap();
    let moved = target.take_over(&source, &|_, _| true, &|| Ok(())).unwrap();
    assert_eq!(moved.sequence, before.len() as u64 + 1);
    assert_eq!(whole_journal(&target), whole_journal(&source));
    let all = |catalog: &dyn Catalog| catalog.choose(&Scope::Library, &Filter::default()).unwrap();
    let shown = |catalog: &dyn Catalog| {
        all(catalog).into_iter().map(|chosen| (chosen.path, chosen.number)).collect::<Vec<_>>()
    };
    assert_eq!(shown(&target), shown(&source));
    // It goes on where it was: numbers do not come back.
    target.put(put("many", "after.txt")).unwrap();
    let after = target.named(&Scope::Library, None, "after.txt", 2).unwrap();
    assert!(shown(&source).iter().all(|(_, number)| *number < after[0].number));
    // By now it has what the file does not.
    let refused = target.take_over(&source, &|_, _| true, &|| Ok(())).unwrap_err();
    assert!(refused.to_string().contains("another library"), "{refused}");

    let back = tempfile::tempdir().unwrap();
    let file = SqliteCatalog::open(back.path()).unwrap();
    target.hand_over(&file, &|_, _| true, &|| Ok(())).unwrap();
    assert_eq!(shown(&file), shown(&target));
    whole_journal(&file);
    file.put(put("many", "last.txt")).unwrap();
    let late = target.put(put("many", "late.txt")).unwrap_err();
    assert!(matches!(late, Error::Moved), "{late}");
}

/// All machines find the packs at one place: whoever notes it first decides, and only whoever moves them changes it.
#[test]
fn the_place_of_the_packs_is_noted_once() {
    let Some(postgres) = Postgres::start() else { return };
    let catalog = open(&postgres, "place");
    assert_eq!(catalog.standing().unwrap(), Standing::default());
    assert_eq!(catalog.claim_objects("s3://library/one").unwrap(), "s3://library/one");
    assert_eq!(catalog.claim_objects("s3://library/two").unwrap(), "s3://library/one");
    catalog.retire_packs(&["a".to_owned()], Moment::from_micros(10), None).unwrap();
    let standing = catalog.standing().unwrap();
    assert_eq!(standing.objects.as_deref(), Some("s3://library/one"));
    assert_eq!(standing.retired, catalog.retired_packs().unwrap());
    let locks = catalog.locks();
    let lost = locks.attempt("writers", LockMode::Exclusive).unwrap().unwrap();
    let fence = lost.fence().cloned();
    catalog.move_objects("s3://library/two", fence.as_ref()).unwrap();
    drop(lost);
    drop(locks.attempt("writers", LockMode::Exclusive).unwrap().unwrap());
    let refused = catalog.move_objects("folder", fence.as_ref());
    assert!(matches!(refused, Err(Error::LockLost)));
    assert_eq!(catalog.standing().unwrap().objects.as_deref(), Some("s3://library/two"));
}

/// A pack that was marked is either written again, and stays, or deleted, and is not relied on meanwhile.
#[test]
fn marked_packs_are_revived_or_deleted_and_never_both() {
    let Some(postgres) = Postgres::start() else { return };
    let catalog = open(&postgres, "marked");
    let at = |micros| Moment::from_micros(micros);
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    let states = || {
        let all = catalog.retired_packs().unwrap().into_iter();
        all.map(|pack| (pack.name, pack.state)).collect::<Vec<_>>()
    };
    catalog.put(put("one", "a.txt")).unwrap();
    catalog.retire_packs(&names(&["a", "b", "c"]), at(10), None).unwrap();
    let marked = catalog.retired_packs().unwrap();
    assert!(marked.iter().all(|pack| pack.sequence == catalog.sequence().unwrap() && pack.at == at(10)));
    // One is written again, one is found to be needed, and a new one is marked.
    assert!(catalog.revive_pack("a").unwrap());
    catalog.retire_packs(&names(&["c", "d"]), at(20), None).unwrap();
    assert_eq!(states(), [("c".to_owned(), PackState::Retired), ("d".to_owned(), PackState::Retired)]);
    // Only what was marked early enough goes, and from then on nobody takes its mark off.
    assert_eq!(catalog.claim_packs(at(15)).unwrap(), names(&["c"]));
    assert!(!catalog.revive_pack("c").unwrap());
    catalog.retire_packs(&names(&["d"]), at(30), None).unwrap();
    assert_eq!(catalog.claim_packs(at(15)).unwrap(), names(&["c"]), "what was left is told again");
    catalog.packs_gone(&names(&["c"])).unwrap();
    assert!(catalog.revive_pack("c").unwrap(), "it is gone, and may be written anew");
    assert_eq!(states(), [("d".to_owned(), PackState::Retired)]);
    // Marks are made by whoever holds the lock, not by whoever held it.
    let locks = catalog.locks();
    let lost = locks.attempt("writers", LockMode::Exclusive).unwrap().unwrap();
    let fence = lost.fence().cloned();
    drop(lost);
    drop(locks.attempt("writers", LockMode::Exclusive).unwrap().unwrap());
    let refused = catalog.retire_packs(&names(&["e"]), at(40), fence.as_ref());
    assert!(matches!(refused, Err(Error::LockLost)));
}

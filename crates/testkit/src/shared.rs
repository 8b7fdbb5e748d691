//! Where the libraries of tests lie: each in its own folder, or on stores that the environment names.
//!
//! `cargo xtask test` runs the tests of tools and identities twice, the second time with `TEST_CATALOG`, the address of a
//! database, `TEST_OBJECTS`, a bucket, and the usual `AWS_…` variables. Every library gets a schema and a prefix of its own.

use std::{
    env, process,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::{SystemTime, UNIX_EPOCH},
};

use shelf_base::Secret;
use shelf_blocks::objects::{Bucket, BucketSettings, Objects};
use shelf_engine::{BucketAccess, CatalogAddress, ObjectsPlace, Options, StorageSettings};

/// A schema of a database and a prefix of a bucket that belong to one library.
#[derive(Clone)]
pub(crate) struct SharedStores {
    catalog: CatalogAddress,
    place: ObjectsPlace,
    access: BucketAccess,
}

impl SharedStores {
    /// Room for a new library; `None` when the environment names no stores.
    pub(crate) fn fresh() -> Option<Self> {
        let (database, bucket) = (variable("TEST_CATALOG")?, variable("TEST_OBJECTS")?);
        let name = unused_name();
        let more = if database.contains('?') { '&' } else { '?' };
        let address = format!("{database}{more}schema={name}");
        let place = format!("{}/{name}", bucket.trim_end_matches('/'));
        Some(Self {
            catalog: CatalogAddress::parse(&address, None).expect("TEST_CATALOG is postgres://…"),
            place: ObjectsPlace::parse(&place).expect("TEST_OBJECTS is s3://bucket"),
            access: BucketAccess {
                without_role: true,
                endpoint: variable("AWS_ENDPOINT_URL"),
                region: variable("AWS_REGION"),
                keys: variable("AWS_ACCESS_KEY_ID").zip(variable("AWS_SECRET_ACCESS_KEY").map(Secret::new)),
                session_token: variable("AWS_SESSION_TOKEN").map(Secret::new),
            },
        })
    }

    /// Options of a library that lies here.
    pub(crate) fn lead(&self, options: Options) -> Options {
        let storage = StorageSettings {
            objects: Some(self.place.clone()),
            access: self.access.clone(),
            ..options.storage
        };
        Options { catalog: Some(self.catalog.clone()), storage, ..options }
    }

    /// Its packs, without copies on this machine.
    pub(crate) fn packs(&self) -> Arc<dyn Objects> {
        let BucketAccess { endpoint, region, keys, session_token, .. } = self.access.clone();
        let place = BucketSettings::parse(&self.place.to_string()).expect("a bucket");
        let settings = BucketSettings { endpoint, region, keys, session_token, ..place };
        Arc::new(Bucket::new(&settings).expect("a bucket"))
    }
}

fn variable(name: &str) -> Option<String> {
    env::var(name).ok().filter(|value| !value.is_empty())
}

/// A name that no other test has, in this process or another.
fn unused_name() -> String {
    static NEXT: AtomicU32 = AtomicU32::new(0);
    let moment = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_nanos());
    format!("test_{}_{}_{moment}", process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

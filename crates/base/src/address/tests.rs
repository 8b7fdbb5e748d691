//! Valid addresses in all their spellings, invalid ones with their messages, and properties of every address.

use proptest::{collection::vec, option, prelude::*};

use super::*;
use crate::bounds::ADDRESS_PAGES;

/// Parses `input` and checks its plain form and, where that differs, its exact form.
fn check(input: &str, plain: &str, exact: Option<&str>) {
    let address: Address = input.parse().unwrap();
    assert_eq!(address.to_string(), plain, "{input}");
    assert_eq!(address.exact().as_deref(), exact, "{input}");
}

fn check_error(input: &str, says: &str) {
    let error = input.parse::<Address>().expect_err(input).to_string();
    assert!(error.contains(says), "{input}: {error}");
}

#[test]
fn canonical_addresses_are_read_and_written_unchanged() {
    for address in [
        "doc://textbook#pages=12-15",
        "doc://textbook#pages=12",
        "doc://textbook#pages=1,3,9",
        "doc://textbook#pages=1,3",
        "doc://textbook",
        "video://lecture_01#t=145-200",
        "video://lecture_01#t=145",
        "video://lecture_01",
        "audio://talk#t=0-4294967295",
        "audio://talk",
        "text://0190163d-8694-739b-aea5-966c26f8ad91#lines=3-9",
        "text://a.b~c#lines=3",
        "text://a",
        "image://map#bbox=0,0.1,0.5,1",
        "image://map#bbox=0.000001,0,1,0.999999",
        "image://map",
        "virtual://lecture_01#chapter_1.intro",
        "virtual://lecture_01#a%20b%2Fc%23%C3%A9",
        "virtual://lecture_01",
        "doc://caf%C3%A9%25#pages=1",
    ] {
        check(address, address, None);
    }
}

#[test]
fn other_spellings_become_the_canonical_one() {
    for (input, plain) in [
        ("DOC://a#pages=1", "doc://a#pages=1"),
        ("doc://a#pages=007-7", "doc://a#pages=7"),
        ("doc://a#pages=3,1,2,2", "doc://a#pages=1-3"),
        ("doc://a#pages=9,1,3", "doc://a#pages=1,3,9"),
        ("doc://a#pages=5,5", "doc://a#pages=5"),
        ("doc://%61%c3%a9#pages=5", "doc://a%C3%A9#pages=5"),
        ("text://a#lines=4-4", "text://a#lines=4"),
        ("video://a#t=2:25-3:20", "video://a#t=145-200"),
        ("video://a#t=75:00-01:20:00", "video://a#t=4500-4800"),
        ("video://a#t=00:02:25,0:03:20.00", "video://a#t=145-200"),
        ("video://a#t=145,200", "video://a#t=145-200"),
        ("video://a#t=npt:145,200", "video://a#t=145-200"),
        ("video://a#t=npt:145", "video://a#t=145"),
        ("video://a#t=,20", "video://a#t=0-20"),
        ("image://a#bbox=0.10,0.2000000,0.5,1.0", "image://a#bbox=0.1,0.2,0.5,1"),
    ] {
        check(input, plain, None);
    }
}

#[test]
fn the_plain_form_rounds_times_outward_and_the_exact_form_keeps_them() {
    for (input, plain, exact) in [
        ("145.5-200", "145-200", "145.5-200"),
        ("145.50,200.01", "145-201", "145.5-200.01"),
        ("0:01:05.25-99.5", "65-100", "65.25-99.5"),
        ("0.05", "0", "0.05"),
    ] {
        let [input, plain, exact] = [input, plain, exact].map(|time| format!("video://a#t={time}"));
        check(&input, &plain, Some(&exact));
    }
    let half = Seconds::nearest(145.5).unwrap();
    let clip = Clip::new(half, Seconds::whole(200)).unwrap();
    let address = Address::new("lecture_01", Place::Video(Some(clip))).unwrap();
    assert_eq!(address.to_string(), "video://lecture_01#t=145-200");
    assert_eq!(address.exact().unwrap(), "video://lecture_01#t=145.5-200");
    assert_eq!((half.hundredths(), half.as_f64()), (14_550, 145.5));
    for wrong in [-0.01, f64::NAN, f64::INFINITY, 4_294_967_295.01] {
        assert!(Seconds::nearest(wrong).is_err(), "{wrong}");
    }
}

#[test]
fn errors_say_what_is_wrong() {
    for (input, says) in [
        ("", "must begin with one of doc://, video://, audio://, text://, image://, virtual://"),
        ("file://a", "must begin with"),
        ("doc:a", "must begin with"),
        (" doc://a", "leading or trailing whitespace"),
        ("doc://a#pages=3\n", "leading or trailing whitespace"),
        ("doc://", "names no resource"),
        ("doc://#pages=3", "names no resource"),
        ("virtual://a#", "names no node"),
        ("doc://a#", "write '#pages=…'"),
        ("doc://a#t=3", "'#t=3' is not a place in a doc:// resource"),
        ("doc://a#pages=", "'' is not a page number"),
        ("doc://a#pages=0", "there is no page 0"),
        ("doc://a#pages=0,1", "there is no page 0"),
        ("doc://a#pages=1,,2", "'' is not a page number"),
        ("doc://a#pages=1-3,5", "'1-3' is not a page number"),
        ("doc://a#pages=+1", "'+1' is not a page number"),
        ("doc://a#pages=4294967296", "1 to 4294967295"),
        ("doc://a#pages=15-12", "pages 15-12 run backwards"),
        ("text://a#lines=0-4", "there is no line 0"),
        ("text://a#lines=9-3", "lines 9-3 run backwards"),
        ("text://a#lines=3 - 9", "'3 ' is not a line number"),
        ("video://a#t=200-145.5", "starts at 200 s and ends at 145.5 s"),
        ("video://a#t=-20", "'' is not a time"),
        ("video://a#t=20,", "'' is not a time"),
        ("video://a#t=1.234", "at most two decimals"),
        ("video://a#t=1e3", "'1e3' is not a time"),
        ("video://a#t=1:60", "'1:60' is not a time"),
        ("video://a#t=1:5", "'1:5' is not a time"),
        ("video://a#t=1:2.5:10", "'1:2.5:10' is not a time"),
        ("video://a#t=0:1:2:3", "'0:1:2:3' is not a time"),
        ("video://a#t=4294967295.01", "is not a time"),
        ("video://a#t=4294967295:00:00", "is not a time"),
        ("image://a#bbox=0,0,1", "but 3 were given"),
        ("image://a#bbox=0,0,1,1,1", "but 5 were given"),
        ("image://a#bbox=0,0,1,1.000001", "'1.000001' is not a bbox coordinate"),
        ("image://a#bbox=0,0,1,0.1234567", "at most six decimals"),
        ("image://a#bbox=-0,0,1,1", "'-0' is not"),
        ("image://a#bbox=0.5,0,0.25,1", "from x1=0.5 to x2=0.25"),
        ("image://a#bbox=0,1,1,1", "from y1=1 to y2=1"),
        ("doc://a%2#pages=1", "'%2' is not an escape"),
        ("doc://a%é1", "'%é1' is not an escape"),
        ("doc://a%+1", "is not an escape"),
        ("doc://a b", "cannot contain ' ' unescaped: write %20"),
        ("virtual://a#é", "write %C3%A9"),
        ("virtual://a#b#c", "write %23"),
        ("doc://%FF", "'%FF' are not UTF-8"),
    ] {
        check_error(input, says);
    }
}

#[test]
fn bounds_apply_to_parsed_and_built_addresses() {
    let room = ADDRESS_BYTES - "doc://".len();
    let longest = format!("doc://{}", "a".repeat(room));
    check(&longest, &longest, None);
    let too_long = NotAnAddress::TooLong { bytes: ADDRESS_BYTES + 1 };
    assert_eq!(format!("{longest}a").parse::<Address>(), Err(too_long.clone()));
    assert_eq!(Address::whole("a".repeat(room + 1), Modality::Document), Err(too_long.clone()));
    // This spelling fits, but the canonical one does not.
    let start_left_out = format!("video://{}#t=,1", "a".repeat(ADDRESS_BYTES - "video://#t=,1".len()));
    assert_eq!(start_left_out.parse::<Address>(), Err(too_long));
    let count = ADDRESS_PAGES + 1;
    assert_eq!(Pages::list(vec![1; count]), Err(NotAnAddress::TooManyPages { count }));
    assert_eq!(Pages::list(vec![]), Err(NotAnAddress::NoPages));
    let odd: Vec<u32> = (0..5_000).map(|page| 2 * page + 1).collect();
    let pages = Pages::list(odd).unwrap();
    let built = Address::new("a", Place::Document(Some(pages)));
    assert!(matches!(built, Err(NotAnAddress::TooLong { .. })));
    let error = "x".repeat(4_000).parse::<Address>().unwrap_err();
    assert!(error.to_string().len() < 400, "{error}");
}

#[test]
fn constructors_and_accessors_agree() {
    let pages: Pages = "3,1,7".parse().unwrap();
    assert_eq!((pages.first(), pages.last()), (1, 7));
    assert_eq!(pages.iter().collect::<Vec<_>>(), [1, 3, 7]);
    assert_eq!(Pages::range(4, 6).unwrap().iter().collect::<Vec<_>>(), [4, 5, 6]);
    assert_eq!(Pages::single(4), "4".parse());
    let region = Region::nearest([0.1, 0.2, 1.0 / 3.0, 1.0]).unwrap();
    assert_eq!(region.millionths(), [100_000, 200_000, 333_333, 1_000_000]);
    assert_eq!(region.corners(), [0.1, 0.2, 0.333333, 1.0]);
    assert!(Region::nearest([f64::NAN, 0.0, 1.0, 1.0]).is_err());
    assert!(Region::from_millionths([0, 0, 1, 1_000_001]).is_err());
    let lines = Address::lines("a b", 3, 9).unwrap();
    assert_eq!((lines.to_string().as_str(), lines.resource()), ("text://a%20b#lines=3-9", "a b"));
    assert_eq!(Address::pages("a", 3, 3).unwrap().to_string(), "doc://a#pages=3");
    assert_eq!(lines.modality().name(), "text");
}

fn pages() -> impl Strategy<Value = Pages> {
    let ends = prop_oneof![1..50u32, 1..=u32::MAX];
    prop_oneof![
        (ends.clone(), ends.clone())
            .prop_map(|(one, other)| Pages::range(one.min(other), one.max(other)).unwrap()),
        vec(ends, 1..12).prop_map(|pages| Pages::list(pages).unwrap()),
    ]
}

fn clips() -> impl Strategy<Value = Clip> {
    let most = u64::from(u32::MAX) * 100;
    let time = prop_oneof![0..30_000u64, 0..=most].prop_map(|time| Seconds::from_hundredths(time).unwrap());
    (time.clone(), option::of(time)).prop_map(|(one, other)| match other {
        Some(other) => Clip::new(one.min(other), one.max(other)).unwrap(),
        None => Clip::starting(one),
    })
}

fn lines() -> impl Strategy<Value = Lines> {
    (1..=u32::MAX, 1..=u32::MAX).prop_map(|(one, other)| Lines::new(one.min(other), one.max(other)).unwrap())
}

fn regions() -> impl Strategy<Value = Region> {
    let start = || prop_oneof![0..4u32, 0..1_000_000u32];
    let side = || start().prop_flat_map(|start| (Just(start), start + 1..=1_000_000));
    (side(), side()).prop_map(|((x1, x2), (y1, y2))| Region::from_millionths([x1, y1, x2, y2]).unwrap())
}

fn names() -> impl Strategy<Value = String> {
    prop_oneof!["[A-Za-z0-9._~-]{1,40}", "\\PC{1,20}", vec(any::<char>(), 1..20).prop_map(String::from_iter)]
}

fn places() -> impl Strategy<Value = Place> {
    prop_oneof![
        option::of(pages()).prop_map(Place::Document),
        option::of(clips()).prop_map(Place::Video),
        option::of(clips()).prop_map(Place::Audio),
        option::of(lines()).prop_map(Place::Text),
        option::of(regions()).prop_map(Place::Image),
        option::of(names().prop_map(|id| Node::new(id).unwrap())).prop_map(Place::Virtual),
    ]
}

/// Text that passes the first checks more often than arbitrary text does.
fn likely_text() -> impl Strategy<Value = String> {
    "(doc|video|audio|text|image|virtual)://[a-z%0-9é]{0,6}#?(pages=|t=|t=npt:|lines=|bbox=)?[0-9.,:%é-]{0,24}"
}

proptest! {
    #[test]
    fn build_parse_build_is_a_fixed_point(resource in names(), place in places()) {
        let address = Address::new(resource, place).unwrap();
        let plain = address.to_string();
        let back: Address = plain.parse().unwrap();
        prop_assert_eq!(back.to_string(), plain);
        prop_assert_eq!(back.exact(), None);
        prop_assert_eq!(back.resource(), address.resource());
        match address.exact() {
            Some(exact) => prop_assert_eq!(exact.parse::<Address>().unwrap(), address),
            None => prop_assert_eq!(back, address),
        }
    }

    #[test]
    fn outward_contains_the_clip(clip in clips()) {
        let outward = clip.outward();
        prop_assert!(outward.start() <= clip.start() && outward.end() >= clip.end());
        prop_assert!(clip.start().hundredths() - outward.start().hundredths() < 100);
        prop_assert_eq!(outward.outward(), outward);
    }

    #[test]
    fn seconds_survive_floating_point(hundredths in 0..=u64::from(u32::MAX) * 100) {
        let time = Seconds::from_hundredths(hundredths).unwrap();
        prop_assert_eq!(Seconds::nearest(time.as_f64()), Ok(time));
    }

    #[test]
    fn arbitrary_text_never_panics(text in any::<String>()) {
        let _ = text.parse::<Address>().map_err(|error| error.to_string());
    }

    #[test]
    fn every_parsed_address_round_trips(text in likely_text()) {
        if let Ok(address) = text.parse::<Address>() {
            let exact = address.exact().unwrap_or_else(|| address.to_string());
            prop_assert_eq!(exact.parse::<Address>(), Ok(address));
        }
    }
}

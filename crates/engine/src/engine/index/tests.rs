//! Tests of the records of indexes and of when an index is used.

use super::*;

#[test]
fn records_read_as_they_were_written() {
    for record in [
        Record::default(),
        Record::complete(),
        Record {
            is_complete: false,
            rows_passed: u64::MAX,
            last: vec![0, 1, 255],
        },
    ] {
        assert_eq!(Record::decode(&record.encode()), record);
    }
    for unknown in [&b""[..], &[3, 1, 0, 0, 0, 0, 0, 0, 0, 0], &[1, 1]] {
        assert_eq!(Record::decode(unknown), Record::default(), "is built from the start");
    }
}

#[test]
fn an_index_is_used_from_its_end_to_its_removal() {
    let indexes = Indexes::default();
    let progress = Arc::new(Progress::new(Uuid::nil(), 3));
    assert!(!indexes.is_complete(7));
    indexes.add_building(7, &progress);
    assert!(!indexes.is_complete(7));
    assert_eq!(indexes.builds().len(), 1);
    indexes.finish(7);
    assert!(indexes.is_complete(7) && indexes.builds().is_empty());
    indexes.remove(7);
    assert!(!indexes.is_complete(7));
    indexes.add_building(8, &progress);
    indexes.remove(8);
    assert!(progress.is_ended.load(Ordering::Relaxed));
    // A build that ends after its index was dropped changes nothing.
    indexes.finish(8);
    assert!(!indexes.is_complete(8));
    indexes.add_complete(9);
    assert!(indexes.is_complete(9));
}

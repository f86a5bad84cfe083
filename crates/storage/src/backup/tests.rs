//! Written data is read back; damaged data is refused, with the file's name.

use std::fs;
use std::path::Path;

use proptest::prelude::*;

use super::*;

/// An entry: its kind, key and value.
type Written = (Kind, Vec<u8>, Vec<u8>);

fn manifest(tables: Vec<TableEntry>) -> Manifest {
    Manifest {
        format: FORMAT,
        helenus: "1".to_owned(),
        profile: "cassandra".to_owned(),
        scope: Scope::Whole,
        moment_micros: 1,
        timestamp_max_micros: i64::MAX,
        records: vec![RecordEntry {
            key: "tks\0t".to_owned(),
            format: 1,
            record: "{\"a\":0.1}".to_owned(),
        }],
        tables,
        lost: Vec::new(),
        checksum: String::new(),
    }
}

/// Writes one table of these entries, in blocks of this many.
fn write(directory: &Path, entries: &[Written], block_entries: usize) {
    let mut writer = Writer::create(directory).unwrap();
    writer.set_file_bytes_max(64);
    writer.begin_table();
    for some in entries.chunks(block_entries) {
        let mut block = Block::default();
        for (kind, key, value) in some {
            let kind = *kind;
            block.add(Entry { kind, key, value });
        }
        writer.write(block).unwrap();
    }
    let table = TableEntry {
        keyspace: "ks".to_owned(),
        table: "t".to_owned(),
        splits: vec![i64::MIN + 1, 0],
        rows: entries.len() as u64,
        deletions: 0,
        late: 0,
        files: writer.end_table().unwrap(),
    };
    writer.finish(&manifest(vec![table])).unwrap();
}

fn read(directory: &Path) -> Result<Vec<Written>, Error> {
    let reader = Reader::open(directory)?;
    reader.verify()?;
    let mut found = Vec::new();
    for table in &reader.manifest().tables {
        let mut blocks = reader.blocks(table);
        while let Some(payload) = blocks.next_block()? {
            for entry in entries(&payload) {
                let entry = entry.unwrap();
                found.push((entry.kind, entry.key.to_vec(), entry.value.to_vec()));
            }
        }
    }
    Ok(found)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]
    #[test]
    fn what_is_written_is_read(
        entries in prop::collection::vec(
            (1_u8..5, prop::collection::vec(any::<u8>(), 0..30), prop::collection::vec(any::<u8>(), 0..90)), 0..40),
        block_entries in 1_usize..7,
    ) {
        let folder = tempfile::tempdir().unwrap();
        let directory = folder.path().join("b");
        let entries: Vec<_> = entries.into_iter().map(|(kind, key, value)| (Kind::of(kind).unwrap(), key, value)).collect();
        write(&directory, &entries, block_entries);
        prop_assert_eq!(read(&directory).unwrap(), entries);
    }

    #[test]
    fn any_payload_is_entries_or_none(payload in prop::collection::vec(any::<u8>(), 0..60)) {
        prop_assert!(entries(&payload).count() <= payload.len());
    }
}

#[test]
fn every_changed_byte_is_refused_by_the_name_of_its_file() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("b");
    let some = |byte: u8| (Kind::Row, vec![byte; 5], vec![byte; 40]);
    write(&directory, &[some(1), some(2), some(3)], 1);
    for name in ["table-1-1.rows", "table-1-2.rows", MANIFEST] {
        let path = directory.join(name);
        let bytes = fs::read(&path).unwrap();
        for at in 0..bytes.len() {
            let mut wrong = bytes.clone();
            wrong[at] ^= 0x01;
            fs::write(&path, &wrong).unwrap();
            let Err(refused) = read(&directory) else {
                // White space of a manifest has no meaning.
                assert!(name == MANIFEST && bytes[at].is_ascii_whitespace(), "{name} {at}");
                continue;
            };
            assert!(refused.to_string().contains(name), "{name} {at}: {refused}");
        }
        fs::write(&path, &bytes[..bytes.len() - 3]).unwrap();
        assert!(read(&directory).unwrap_err().to_string().contains(name));
        fs::remove_file(&path).unwrap();
        assert!(read(&directory).unwrap_err().to_string().contains(name));
        std::os::unix::fs::symlink("/dev/zero", &path).unwrap();
        assert!(read(&directory).unwrap_err().to_string().contains("it is no file"));
        fs::remove_file(&path).unwrap();
        fs::write(&path, &bytes).unwrap();
    }
    assert_eq!(read(&directory).unwrap().len(), 3);
}

#[test]
fn a_newer_format_and_a_name_that_leads_elsewhere_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let put = |manifest: &Manifest| {
        let path = folder.path().join(MANIFEST);
        fs::write(&path, manifest.encode(&path).unwrap()).unwrap();
        Reader::open(folder.path()).unwrap_err().to_string()
    };
    let newer = put(&Manifest {
        format: 2,
        ..manifest(Vec::new())
    });
    assert!(newer.contains("has format 2"), "{newer}");
    let elsewhere = put(&manifest(vec![TableEntry {
        keyspace: String::new(),
        table: String::new(),
        splits: Vec::new(),
        rows: 0,
        deletions: 0,
        late: 0,
        files: vec![FileEntry {
            name: "../x".to_owned(),
            bytes: 0,
            xxh3: String::new(),
        }],
    }]));
    assert!(elsewhere.contains("outside"), "{elsewhere}");
}

#[test]
fn what_holds_something_is_not_written_to_and_what_was_interrupted_is_no_backup() {
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("b");
    drop(Writer::create(&directory).unwrap());
    assert!(matches!(Reader::open(&directory), Err(Error::NoManifest { .. })));
    fs::write(directory.join("x"), "").unwrap();
    assert!(matches!(Writer::create(&directory), Err(Error::NotEmpty { .. })));
}

#[cfg(unix)]
#[test]
fn only_the_owner_can_read_it() {
    use std::os::unix::fs::MetadataExt;
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().join("b");
    fs::create_dir(&directory).unwrap();
    write(&directory, &[(Kind::Row, vec![1], vec![2])], 1);
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(&directory), 0o700);
    for name in [MANIFEST, "table-1-1.rows"] {
        assert_eq!(mode(&directory.join(name)), 0o600, "{name}");
    }
}

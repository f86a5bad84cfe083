//! The paths of SlateDB's objects, as far as this engine reads them.
//!
//! ```text
//! DATABASE/wal/<id, 20 digits>.sst                 the log; one without a byte marks where a writer took over
//! DATABASE/manifest/<id>.manifest                  which tables there are, and from where on the log counts
//! DATABASE/compactions/<id>.compactions            what the compactor is doing
//! DATABASE/compacted/<ULID>.sst                    tables
//! DATABASE/gc/{manifest,compactions}.boundary      up to which id objects may have been removed, in digits
//! ```
//! Source: SlateDB 0.18.0 (`paths.rs`), slatedb-txn-obj 0.18.0 (`object_store.rs`).

use slatedb::object_store::path::Path;

use crate::storage::identity::MAIN;

/// The path of the main database in its object store.
pub(super) const DATABASE: &str = "engine";

/// The number of the store that a database is.
pub(super) fn number_of(database: &str) -> u32 {
    let number = database.strip_prefix("stores/").and_then(|number| number.parse().ok());
    number.unwrap_or(MAIN)
}

/// The folder of the log that all databases of a bucket share.
pub(super) const SHARED_LOG: &str = "log";

/// A folder whose objects are numbered consecutively.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) enum Folder {
    Log,
    Manifests,
    Compactions,
}

/// Digits of a number in a name.
const DIGITS: usize = 20;

impl Folder {
    const ALL: [Self; 3] = [Self::Log, Self::Manifests, Self::Compactions];

    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Log => "wal",
            Self::Manifests => "manifest",
            Self::Compactions => "compactions",
        }
    }

    fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.name() == name)
    }

    const fn suffix(self) -> &'static str {
        match self {
            Self::Log => ".sst",
            Self::Manifests => ".manifest",
            Self::Compactions => ".compactions",
        }
    }

    /// Its path in a database.
    pub(super) fn path(self, database: &str) -> Path {
        Path::from(format!("{database}/{}", self.name()))
    }

    /// The path of one of its objects.
    pub(super) fn object(self, database: &str, id: u64) -> Path {
        Path::from(format!("{database}/{}/{id:0DIGITS$}{}", self.name(), self.suffix()))
    }

    /// The number of one of its objects, by its file name. `None` means that it is not one of them.
    pub(super) fn id(self, name: &str) -> Option<u64> {
        let digits = name.strip_suffix(self.suffix())?;
        let is_number = digits.len() == DIGITS && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse().ok())?
    }
}

/// The database that an object belongs to: all but the last two parts of its path.
pub(super) fn database_of(location: &Path) -> &str {
    let folder = location.as_ref().rsplit_once('/').map_or("", |(folder, _)| folder);
    folder.rsplit_once('/').map_or("", |(database, _)| database)
}

/// A numbered object: its database, folder and number. `None` means any other object.
pub(super) fn numbered(location: &Path) -> Option<(&str, Folder, u64)> {
    let (folder, name) = location.as_ref().rsplit_once('/')?;
    let (database, kind) = folder.rsplit_once('/')?;
    let folder = Folder::named(kind)?;
    Some((database, folder, folder.id(name)?))
}

/// A folder, by its path: its database and kind. `None` means any other folder.
pub(super) fn folder_of(path: &Path) -> Option<(&str, Folder)> {
    let (database, folder) = path.as_ref().rsplit_once('/')?;
    Some((database, Folder::named(folder)?))
}

/// The folder whose clean-up boundary an object is. `None` means any other object.
pub(super) fn boundary_of(location: &Path) -> Option<Folder> {
    let (folder, name) = location.as_ref().rsplit_once('/')?;
    let name = name.strip_suffix(".boundary").filter(|_| folder.ends_with("/gc"))?;
    Folder::named(name)
}

/// The path of a folder's clean-up boundary.
pub(super) fn boundary(database: &str, folder: Folder) -> Path {
    Path::from(format!("{database}/gc/{}.boundary", folder.name()))
}

/// Whether an object says how far others were removed.
pub(super) fn is_of_clean_up(location: &Path) -> bool {
    location.as_ref().ends_with(".boundary")
}

/// Whether an object is one of the log that all databases of a bucket share.
pub(super) fn is_of_shared_log(location: &Path) -> bool {
    location.as_ref().split('/').next() == Some(SHARED_LOG)
}

/// Whether SlateDB reads the object without a checksum.
pub(super) fn is_sealed(location: &Path) -> bool {
    match numbered(location) {
        Some((_, folder, _)) => folder != Folder::Log,
        None => is_of_clean_up(location),
    }
}

/// Whether an object is a table, which never changes.
pub(super) fn is_table(location: &Path) -> bool {
    let mut parts = location.as_ref().rsplit('/');
    parts.next().is_some_and(|name| name.ends_with(".sst")) && parts.next() == Some("compacted")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_numbered_object_is_told_from_others() {
        let location = Folder::Log.object("stores/3", 17);
        assert_eq!(location.as_ref(), "stores/3/wal/00000000000000000017.sst");
        assert_eq!(numbered(&location), Some(("stores/3", Folder::Log, 17)));
        assert!(!is_sealed(&location));
        let manifest = Folder::Manifests.object("engine", 1);
        assert_eq!(numbered(&manifest), Some(("engine", Folder::Manifests, 1)));
        assert!(is_sealed(&manifest) && is_sealed(&boundary("engine", Folder::Compactions)));
        assert!(is_table(&Path::from("engine/compacted/01J79C21YKR31J2BS1EFXJZ7MR.sst")));
        assert!(!is_table(&location) && !is_table(&Path::from("engine/compacted/gc.boundary")));
        for other in [
            "engine/compacted/01J79C21YKR31J2BS1EFXJZ7MR.sst",
            "engine/wal/00000000000000000017.sst#1",
            "engine/wal/17.sst",
            "wal/00000000000000000017.sst",
        ] {
            assert_eq!(numbered(&Path::from(other)), None, "{other}");
        }
    }
}

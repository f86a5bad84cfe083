//! Who imports whom, file by file, re-exports followed to the file that defines the name.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use super::source::{File, Import, files};

/// Where a path leads.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Target {
    /// The module whose file defines the name.
    File(Vec<String>),
    /// A path into another crate.
    Crate(Vec<String>),
}

/// The files of the crate and what each one names.
pub(crate) struct Imports {
    files: BTreeMap<Vec<String>, File>,
}

/// More re-exports than any name passes through.
const STEPS_MAX: usize = 16;

impl Imports {
    /// The files of one folder of source.
    pub(crate) fn of(root: &Path, folder: &str) -> Self {
        Self {
            files: files(root, folder),
        }
    }

    /// The rooms of the program and of the crates below it, as one tree: a room's name is its own in all crates.
    pub(crate) fn of_rooms(root: &Path) -> Self {
        let mut all = files(root, "src");
        for entry in fs::read_dir(root.join("crates")).unwrap() {
            let folder = format!("crates/{}/src", entry.unwrap().file_name().to_string_lossy());
            for (module, file) in files(root, &folder) {
                if !module.is_empty() {
                    let before = all.insert(module, file);
                    assert!(before.is_none(), "two rooms have one name");
                }
            }
        }
        Self { files: all }
    }

    pub(crate) fn from_files(files: Vec<File>) -> Self {
        let files = files.into_iter().map(|file| (file.module.clone(), file)).collect();
        Self { files }
    }

    pub(crate) fn files(&self) -> impl Iterator<Item = &File> {
        self.files.values()
    }

    /// The name of a module's file.
    pub(crate) fn name(&self, module: &[String]) -> &str {
        &self.files[module].name
    }

    /// What a file names, re-exports of other crates with it.
    pub(crate) fn names(&self, file: &File) -> BTreeSet<Target> {
        let exported = file.imports.iter().filter(|import| import.is_public);
        let exported = exported.map(|import| self.resolve(&file.module, &import.path, STEPS_MAX));
        let mut names = self.targets(file);
        names.extend(exported.filter(|target| matches!(target, Target::Crate(_))));
        names
    }

    /// What a file uses, itself left out.
    pub(crate) fn targets(&self, file: &File) -> BTreeSet<Target> {
        let mut targets = BTreeSet::new();
        for import in &file.imports {
            let target = self.resolve(&file.module, &import.path, STEPS_MAX);
            // A module that is only given a name: the paths that begin with the name say what is used of it. A re-export uses
            // nothing.
            let is_module =
                matches!(&target, Target::File(module) if self.is_module(&file.module, &import.path, module));
            if !(import.is_public || is_module && import.name.is_some()) {
                targets.insert(target);
            }
        }
        for path in &file.paths {
            targets.insert(self.resolve(&file.module, path, STEPS_MAX));
        }
        targets.remove(&Target::File(file.module.clone()));
        targets
    }

    /// Whether a path is a module's own, not that of a name in it.
    fn is_module(&self, from: &[String], path: &[String], target: &[String]) -> bool {
        match self.absolute(from, path) {
            Some(whole) => whole == target || path.last() == target.last() && !self.defines(target, path.last()),
            None => false,
        }
    }

    fn defines(&self, module: &[String], name: Option<&String>) -> bool {
        name.is_some_and(|name| self.files[module].items.contains(name))
    }

    /// A path from the crate's root; `None` where it begins with another crate, or with a name that the file has of itself.
    fn absolute(&self, from: &[String], path: &[String]) -> Option<Vec<String>> {
        let (first, rest) = path.split_first()?;
        match first.as_str() {
            "crate" => Some(rest.to_vec()),
            // A crate of ours, whose rooms are in the same tree.
            name if name.starts_with("helenus_") => Some(rest.to_vec()),
            "self" => Some([from, rest].concat()),
            "super" => {
                let mut above = from.to_vec();
                above.pop();
                let further = rest.iter().take_while(|segment| *segment == "super").count();
                above.truncate(above.len().saturating_sub(further));
                Some([&above[..], &rest[further..]].concat())
            }
            _ => {
                let child = [from, std::slice::from_ref(first)].concat();
                self.files.contains_key(&child).then(|| [from, path].concat())
            }
        }
    }

    /// The file that defines what `path`, written in `from`, names.
    fn resolve(&self, from: &[String], path: &[String], steps: usize) -> Target {
        let Some(absolute) = self.absolute(from, path) else {
            return self.resolve_imported(from, path, steps);
        };
        let mut module = Vec::new();
        let mut rest = &absolute[..];
        while let Some((next, behind)) = rest.split_first() {
            let child = [&module[..], std::slice::from_ref(next)].concat();
            if !self.files.contains_key(&child) {
                break;
            }
            (module, rest) = (child, behind);
        }
        match rest.first() {
            Some(name) if steps > 0 => self.follow(&module, name, rest, steps),
            _ => Target::File(module),
        }
    }

    /// A path that begins with a name which `from` imported, or with another crate's.
    fn resolve_imported(&self, from: &[String], path: &[String], steps: usize) -> Target {
        let first = path.first();
        let imported = self.files[from]
            .imports
            .iter()
            .find(|import| import.name.as_ref() == first);
        match imported {
            Some(import) if steps > 0 && import.path != path[..1] => {
                let whole = [&import.path[..], &path[1..]].concat();
                self.resolve(from, &whole, steps - 1)
            }
            _ if self.defines(from, first) => Target::File(from.to_vec()),
            _ => Target::Crate(path.to_vec()),
        }
    }

    /// A name in a module: its own, or one that it re-exports.
    fn follow(&self, module: &[String], name: &str, path: &[String], steps: usize) -> Target {
        let file = &self.files[module];
        if file.items.contains(name) {
            return Target::File(module.to_vec());
        }
        let named = file.imports.iter().find(|import| import.name.as_deref() == Some(name));
        if let Some(import) = named {
            let whole = [&import.path[..], &path[1..]].concat();
            return self.resolve(module, &whole, steps - 1);
        }
        for import in file.imports.iter().filter(|import| import.name.is_none()) {
            if let Some(target) = self.through_glob(module, import, path, steps) {
                return target;
            }
        }
        Target::File(module.to_vec())
    }

    fn through_glob(&self, module: &[String], import: &Import, path: &[String], steps: usize) -> Option<Target> {
        let whole = [&import.path[..], path].concat();
        match self.resolve(module, &whole, steps - 1) {
            Target::File(found) if self.defines(&found, path.first()) => Some(Target::File(found)),
            _ => None,
        }
    }

    /// Knots of files that import each other in circles, in each room: sets of two files and more, largest first. The files of a
    /// folder may take what their `mod.rs` defines, and it puts them together: that it names them is no arrow.
    pub(crate) fn knots(&self) -> Vec<BTreeSet<String>> {
        let mut arrows: BTreeMap<&[String], BTreeSet<Vec<String>>> = BTreeMap::new();
        for file in self.files() {
            let inside = self.targets(file).into_iter().filter_map(|target| match target {
                Target::File(to) if to.first() == file.module.first() && !to.starts_with(&file.module) => Some(to),
                Target::File(_) | Target::Crate(_) => None,
            });
            arrows.insert(&file.module, inside.collect());
        }
        let reached: BTreeMap<&[String], BTreeSet<&[String]>> =
            arrows.keys().map(|from| (*from, reach(&arrows, from))).collect();
        let mut knots = BTreeSet::new();
        for (from, there) in &reached {
            let back = there
                .iter()
                .filter(|to| reached.get(**to).is_some_and(|of| of.contains(from)));
            let knot: BTreeSet<String> = back.map(|to| self.name(to).to_owned()).collect();
            if knot.len() > 1 {
                knots.insert(knot);
            }
        }
        let mut knots: Vec<_> = knots.into_iter().collect();
        knots.sort_by_key(|knot| std::cmp::Reverse(knot.len()));
        knots
    }
}

/// A circle of parts: files and folders of one folder, which import each other.
#[derive(Debug)]
pub(crate) struct Circle {
    /// The folder.
    pub(crate) folder: String,
    /// Names of its parts that are in the circle.
    pub(crate) parts: BTreeSet<String>,
    /// The imports between them, `file uses file`.
    pub(crate) arrows: Vec<String>,
}

/// The imports from one part of a folder to another, by their names.
type Arrows<'a> = BTreeMap<(&'a str, &'a str), Vec<String>>;

impl Imports {
    /// The circles between the parts of every folder. A part is a file with the folder of its name. The folder's own file belongs
    /// to no part: it puts the parts together, and they may take what it defines.
    pub(crate) fn circles(&self) -> Vec<Circle> {
        let mut by_folder: BTreeMap<&[String], Arrows<'_>> = BTreeMap::new();
        for file in self.files() {
            for target in self.targets(file) {
                let Target::File(to) = &target else { continue };
                let Some((to, _)) = self.files.get_key_value(to) else {
                    continue;
                };
                let shared = file.module.iter().zip(to).take_while(|(a, b)| a == b).count();
                let (Some(from_part), Some(to_part)) = (file.module.get(shared), to.get(shared)) else {
                    continue;
                };
                let arrow = format!("{} uses {}", file.name, self.name(to));
                let arrows = by_folder.entry(&file.module[..shared]).or_default();
                arrows.entry((from_part, to_part)).or_default().push(arrow);
            }
        }
        by_folder
            .into_iter()
            .flat_map(|(folder, arrows)| circles_of(folder, &arrows))
            .collect()
    }
}

fn circles_of<'a>(folder: &[String], arrows: &Arrows<'a>) -> Vec<Circle> {
    let parts: BTreeSet<&'a str> = arrows.keys().flat_map(|(from, to)| [*from, *to]).collect();
    let reach = |from: &'a str| {
        let mut reached = BTreeSet::new();
        let mut open = vec![from];
        while let Some(at) = open.pop() {
            let next = arrows.keys().filter(|(from, _)| *from == at).map(|(_, to)| *to);
            open.extend(next.filter(|to| reached.insert(*to)));
        }
        reached
    };
    let reached: BTreeMap<&'a str, BTreeSet<&'a str>> = parts.iter().map(|part| (*part, reach(part))).collect();
    let circles: BTreeSet<BTreeSet<&'a str>> = reached
        .iter()
        .filter(|(part, there)| there.contains(*part))
        .map(|(part, there)| there.iter().copied().filter(|to| reached[to].contains(part)).collect())
        .collect();
    let circle = |parts: BTreeSet<&'a str>| Circle {
        folder: folder.join("/"),
        arrows: arrows
            .iter()
            .filter(|((from, to), _)| parts.contains(from) && parts.contains(to))
            .flat_map(|(_, lines)| lines.clone())
            .collect(),
        parts: parts.into_iter().map(str::to_owned).collect(),
    };
    circles.into_iter().map(circle).collect()
}

/// Every module that can be reached from one.
fn reach<'a>(arrows: &'a BTreeMap<&[String], BTreeSet<Vec<String>>>, from: &[String]) -> BTreeSet<&'a [String]> {
    let mut reached = BTreeSet::new();
    let mut open: Vec<&[String]> = arrows.get(from).into_iter().flatten().map(Vec::as_slice).collect();
    while let Some(next) = open.pop() {
        if reached.insert(next) {
            open.extend(arrows.get(next).into_iter().flatten().map(Vec::as_slice));
        }
    }
    reached
}

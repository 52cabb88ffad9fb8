//! That no crate has a circle of more than three files that import one another: each can be read only with all others in mind.
//!
//! Reads the lines that rustfmt makes of `mod`, `use` and paths, tests apart. Calls of methods are not seen, nor what macros make.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// By path: `crate::plan`.
type Modules = BTreeMap<String, Module>;

#[derive(Default)]
struct Module {
    file: PathBuf,
    /// What is imported: its name here, its path, and whether it is handed on.
    imports: Vec<(String, String, bool)>,
    /// Words and paths besides: `read`, `super::plan::read`.
    paths: BTreeSet<String>,
    /// Modules in files of their own, and the file if `#[path]` names it.
    children: Vec<(String, Option<String>)>,
}

/// Whether the item that `line` begins is public, and what is behind its `keyword`; `None`: it is another one.
fn item<'a>(line: &'a str, keyword: &str) -> Option<(bool, &'a str)> {
    let (head, rest) = line.trim_start().split_once(keyword)?;
    let is_public = head == "pub " || (head.starts_with("pub(") && head.ends_with(") "));
    (head.is_empty() || is_public).then_some((is_public, rest))
}

/// Adds the names and paths of an import behind `prefix`.
fn expand(tree: &str, prefix: &str, found: &mut Vec<(String, String)>) {
    let mut depth = 0;
    let parts = tree.split(|c: char| {
        depth += i32::from(c == '{') - i32::from(c == '}');
        depth == 0 && c == ','
    });
    for part in parts.map(str::trim).filter(|part| !part.is_empty()) {
        if let Some((head, tail)) = part.split_once('{') {
            expand(tail.strip_suffix('}').unwrap_or(tail), &format!("{prefix}{head}"), found);
            continue;
        }
        let (path, alias) = part.split_once(" as ").map_or((part, None), |(path, alias)| (path, Some(alias)));
        let path = format!("{prefix}{path}");
        let path = path.strip_suffix("::self").unwrap_or(&path);
        let name = alias.or(path.rsplit("::").next()).unwrap_or_default();
        found.push((name.to_owned(), path.to_owned()));
    }
}

fn parse(file: &Path, text: &str) -> Module {
    let mut module = Module { file: file.to_owned(), ..Module::default() };
    let (mut is_test, mut is_inline, mut own) = (false, false, None);
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    while let Some(line) = lines.next() {
        // A module in braces is one step further away from all others.
        let of_file = |path: &str| match path.strip_prefix("super::").filter(|_| is_inline) {
            Some(path) => format!("self::{path}"),
            None => path.to_owned(),
        };
        if line.starts_with("#[cfg(") {
            is_test = line.contains("test");
        } else if let Some(path) = line.strip_prefix("#[path = \"") {
            own = path.strip_suffix("\"]").map(str::to_owned);
        } else if let Some((_, name)) = item(line, "mod ") {
            match name.strip_suffix(';') {
                // Tests are at the end.
                None if is_test => break,
                None => is_inline = true,
                Some(_) if is_test => {}
                Some(name) => module.children.push((name.to_owned(), own.take())),
            }
            (is_test, own) = (false, None);
        } else if let Some((is_public, start)) = item(line, "use ").filter(|_| line.ends_with([';', '{'])) {
            let mut tree = start.to_owned();
            while !tree.ends_with(';') {
                let Some(more) = lines.next() else { break };
                tree.push_str(more.trim());
            }
            let mut found = Vec::new();
            expand(tree.trim_end_matches(';'), "", &mut found);
            module.imports.extend(found.into_iter().map(|(name, path)| (name, of_file(&path), is_public)));
        } else {
            let code = line.split(" // ").next().unwrap_or(line);
            let words = code.split(|c: char| !c.is_alphanumeric() && c != '_' && c != ':');
            module.paths.extend(words.map(|word| of_file(word.trim_matches(':'))));
            is_inline &= line != "}";
            is_test &= line.starts_with('#');
        }
    }
    module
}

/// Reads a file and those of the modules that it declares.
fn load(module: &str, file: &Path, read: &dyn Fn(&Path) -> Option<String>, modules: &mut Modules) {
    let Some(text) = read(file) else { return };
    let parsed = parse(file, &text);
    let (folder, stem) = (file.parent().unwrap_or(file), file.with_extension(""));
    let base = if stem.ends_with("lib") || stem.ends_with("mod") { folder } else { stem.as_path() };
    for (name, own) in &parsed.children {
        let child = format!("{module}::{name}");
        match own {
            // It stands in for one that a feature leaves out.
            Some(_) if modules.contains_key(&child) => {}
            Some(own) => load(&child, &folder.join(own), read, modules),
            None => {
                load(&child, &base.join(format!("{name}.rs")), read, modules);
                load(&child, &base.join(name).join("mod.rs"), read, modules);
            }
        }
    }
    modules.insert(module.to_owned(), parsed);
}

/// The module that defines what the module `from` calls `path`; `None`: it is a module itself, of another crate, or local.
fn defined(modules: &Modules, from: &str, path: &str) -> Option<String> {
    resolved(modules, from, path, 8).and_then(|(module, is_whole)| (!is_whole).then_some(module))
}

/// What `path` leads to, and whether it is the module as a whole.
fn resolved(modules: &Modules, from: &str, path: &str, hops: usize) -> Option<(String, bool)> {
    let (mut at, mut is_ours) = (from.to_owned(), false);
    let mut names = path.split("::").peekable();
    while let Some(name) = names.next() {
        let child = format!("{at}::{name}");
        let is_child = modules.contains_key(&child);
        let import = modules.get(&at)?.imports.iter().find(|(known, ..)| known == name && hops > 0);
        match (name, import) {
            ("crate", _) => at = "crate".to_owned(),
            ("self", _) => {}
            ("super", _) => at = at.rsplit_once("::")?.0.to_owned(),
            // A function may be called like its module.
            (_, Some((_, path, _))) if !is_child || names.peek().is_none() => {
                let (module, is_whole) = resolved(modules, &at, path, hops - 1)?;
                if !is_whole {
                    return Some((module, false));
                }
                at = module;
            }
            _ if is_child => at = child,
            _ => return is_ours.then_some((at, false)),
        }
        is_ours = true;
    }
    Some((at, true))
}

/// Groups of files that import one another, directly or by way of others.
fn circles(read: &dyn Fn(&Path) -> Option<String>) -> BTreeSet<BTreeSet<PathBuf>> {
    let mut modules = Modules::new();
    load("crate", Path::new("lib.rs"), read, &mut modules);
    let needs = |(from, module): (&String, &Module)| {
        // What is only handed on binds nobody.
        let own = module.imports.iter().filter(|(.., is_public)| !is_public).map(|(_, path, _)| path);
        let needed = own.chain(&module.paths).filter_map(|path| defined(&modules, from, path));
        (from.clone(), needed.collect::<BTreeSet<String>>())
    };
    let needs: BTreeMap<String, BTreeSet<String>> = modules.iter().map(needs).collect();
    let reach = |from: &String| {
        let mut reached = BTreeSet::from([from.clone()]);
        let mut open = vec![from];
        while let Some(next) = open.pop() {
            open.extend(needs[next].iter().filter(|to| reached.insert((*to).clone())));
        }
        (from.clone(), reached)
    };
    let reached: BTreeMap<String, BTreeSet<String>> = needs.keys().map(reach).collect();
    let circle = |(from, all): (&String, &BTreeSet<String>)| {
        let back = all.iter().filter(|to| reached[*to].contains(from));
        back.map(|to| modules[to].file.clone()).collect::<BTreeSet<PathBuf>>()
    };
    reached.iter().map(circle).filter(|circle| circle.len() > 1).collect()
}

#[test]
fn no_import_circle_has_more_than_three_files() {
    for name in super::crates() {
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(&name).join("src");
        for circle in circles(&|file| fs::read_to_string(source.join(file)).ok()) {
            assert!(circle.len() <= 3, "of `{name}`, move what these share into a file of its own: {circle:?}");
        }
    }
}

#[test]
fn a_circle_is_found_by_way_of_what_is_handed_on() {
    let mut files = BTreeMap::from([
        ("lib.rs", "mod a;\nmod b;\npub mod c;\n\npub use c::Thing;\n\n// a::f\npub const ONE: u8 = 1;\n"),
        ("a.rs", "use crate::Thing;\n\n#[cfg(test)]\nmod tests {\n    use super::super::d::f;\n}\n"),
        ("b.rs", "fn g() -> u8 {\n    crate::ONE + crate::a::f()\n}\n\nmod defaults {\n    use super::g;\n}\n"),
        ("c/mod.rs", "#[path = \"deep.rs\"]\nmod inner;\n\npub(crate) use inner::{\n    Other as Thing,\n};\n"),
        ("c/deep.rs", "use super::super::{\n    b::{self, g as h},\n    d,\n};\n\nfn x() {\n    b::g();\n}\n"),
    ]);
    let found = |files: &BTreeMap<&str, &str>| circles(&|file| files.get(file.to_str()?).copied().map(str::to_owned));
    let circle = BTreeSet::from(["a.rs", "b.rs", "c/deep.rs"].map(PathBuf::from));
    assert_eq!(found(&files), BTreeSet::from([circle]));
    files.insert("c/deep.rs", "use std::b::g;\n\n#[cfg(test)]\nmod tests {\n    use super::super::super::b::g;\n}\n");
    assert!(found(&files).is_empty());
}

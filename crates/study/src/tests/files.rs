//! Studies from files and folders, and what is said when there is none.

use std::fs;
use std::path::Path;

use super::super::error::StudyError;
use super::super::spec::Study;
use super::{SHOP, changes};

fn refusal_of(path: &Path, within: &Path) -> String {
    let error = Study::read(path, &[]).expect_err("no study");
    error.to_string().replace(&within.display().to_string(), "DIR")
}

#[test]
fn a_file_or_its_folder_is_read() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("study.yaml"), SHOP).expect("a file");
    fs::write(dir.path().join("other.yaml"), "\u{feff}".to_owned() + SHOP).expect("a file");
    for path in [dir.path().to_owned(), dir.path().join("study.yaml"), dir.path().join("other.yaml")] {
        let plan = Study::read(&path, &changes(&["rounds=7"])).expect("a study");
        assert_eq!((plan.study.rounds, plan.variants.len()), (7, 3));
        assert_eq!(plan.dir, dir.path());
    }
}

#[test]
fn what_is_no_study_is_told_apart() {
    let dir = tempfile::tempdir().expect("a folder");
    let path = dir.path();
    assert_eq!(
        refusal_of(&path.join("shop"), path),
        "there is no `DIR/shop`; give a study file, or a folder that holds `study.yaml`"
    );
    assert_eq!(
        refusal_of(path, path),
        "the folder `DIR` holds no `study.yaml`; give a study file, or a folder that holds one"
    );

    fs::create_dir(path.join("shop")).expect("a folder");
    fs::write(path.join("shop/study.yaml"), "study: shop\n\tx: y\n").expect("a file");
    assert_eq!(refusal_of(path, path), "the folder `DIR` holds no `study.yaml`; did you mean `DIR/shop`?");
    assert_eq!(
        refusal_of(&path.join("shop"), path),
        "DIR/shop/study.yaml:2:1: a tab indents this line; replace it by spaces, YAML allows nothing else"
    );

    fs::write(path.join("latin.yaml"), b"study: caf\xe9\n").expect("a file");
    assert_eq!(
        refusal_of(&path.join("latin.yaml"), path),
        "`DIR/latin.yaml` is not UTF-8 text (look at byte 10); save it as UTF-8"
    );
    fs::write(path.join("large.yaml"), "#".repeat(300 << 10)).expect("a file");
    assert_eq!(
        refusal_of(&path.join("large.yaml"), path),
        "`DIR/large.yaml` is larger than 256 KiB, which no study needs; is it the right file?"
    );
    // An endless file ends at the limit.
    assert!(matches!(Study::read("/dev/zero", &[]), Err(StudyError::TooLarge { .. })));
}

#[test]
fn problems_are_told_with_their_places() {
    let dir = tempfile::tempdir().expect("a folder");
    fs::write(dir.path().join("study.yaml"), SHOP.replace("rate: 300", "rte: 300")).expect("a file");
    let error = Study::read(dir.path(), &[]).expect_err("no study");
    let [problem] = error.problems() else { panic!("{error}") };
    assert_eq!((problem.path().as_str(), problem.line(), problem.column()), ("load", Some(27), Some(3)));
    assert_eq!(problem.message(), "unknown key `rte`, did you mean `rate`?");
}

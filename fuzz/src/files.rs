//! Converts corpora between their text files and the directories that libFuzzer uses.
//!
//! * `list`: the names of all targets
//! * `unpack TARGET DIRECTORY`: writes each input into a file of its own
//! * `pack TARGET DIRECTORY`: takes the files of a directory, the smallest first, as what the fuzzer found; prints how many
//! * `escape FILE`: prints a file as a line of a corpus

use crate::{ALL, corpus::inputs, named};
use std::{collections::BTreeSet, error::Error, fs, path::Path};

/// Everything below this line of a corpus is the fuzzer's, and replaced.
const FOUND_BY_THE_FUZZER: &str = "# Found by the fuzzer:";

/// The most bytes of text that the fuzzer's inputs of one target may take.
const MOST_TEXT: usize = 32 << 10;

/// The most inputs of the fuzzer's for one target.
const MOST_INPUTS: usize = 256;

/// The longest input of the fuzzer's that is kept, in bytes of text.
const LONGEST: usize = 4 << 10;

/// Carries out one of these commands, given as words.
pub fn run(command: &str) -> Result<(), Box<dyn Error>> {
    match command.split_whitespace().collect::<Vec<_>>()[..] {
        ["list"] => ALL.iter().for_each(|folder| folder.targets.iter().for_each(|target| println!("{}/{}", folder.name, target.name))),
        ["unpack", target, directory] => unpack(target, Path::new(directory))?,
        ["pack", target, directory] => pack(target, Path::new(directory))?,
        ["escape", file] => println!("{}", escaped(&fs::read(file)?)),
        _ => return Err("CORPUS is one of: list, unpack TARGET DIRECTORY, pack TARGET DIRECTORY, escape FILE".into()),
    }
    Ok(())
}

/// The file in the tree: what is there now, not what was there when this was built.
fn file_of(target: &str) -> Result<String, Box<dyn Error>> {
    named(target).ok_or_else(|| format!("there is no target {target}"))?;
    Ok(format!("{}/corpus/{target}.txt", env!("CARGO_MANIFEST_DIR")))
}

fn unpack(target: &str, directory: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(directory)?;
    for (line, input) in inputs(&fs::read_to_string(file_of(target)?)?) {
        fs::write(directory.join(format!("line-{line:05}")), input)?;
    }
    Ok(())
}

fn pack(target: &str, directory: &Path) -> Result<(), Box<dyn Error>> {
    let file = file_of(target)?;
    let before = fs::read_to_string(&file)?;
    let by_people = before.split(FOUND_BY_THE_FUZZER).next().unwrap_or_default().trim_end();
    let known: BTreeSet<&str> = by_people.lines().collect();
    let mut found = Vec::new();
    for entry in fs::read_dir(directory)? {
        found.push(escaped(&fs::read(entry?.path())?));
    }
    found.retain(|line| !line.is_empty() && line.len() <= LONGEST && !known.contains(line.as_str()));
    found.sort_by(|one, other| (one.len(), one).cmp(&(other.len(), other)));
    found.dedup();
    let mut room = MOST_TEXT;
    let fits = |line: &&String| {
        room = room.saturating_sub(line.len() + 1);
        room > 0
    };
    let kept: Vec<&String> = found.iter().take(MOST_INPUTS).take_while(fits).collect();
    let mut text = format!("{by_people}\n{FOUND_BY_THE_FUZZER}\n");
    kept.iter().for_each(|line| text.extend([line.as_str(), "\n"]));
    fs::write(&file, &text)?;
    println!("{}", inputs(&text).count());
    Ok(())
}

/// An input as a line: printable, without a line break, and no comment.
fn escaped(input: &[u8]) -> String {
    let line = input.escape_ascii().to_string();
    match line.strip_prefix('#') {
        Some(rest) => format!("\\x23{rest}"),
        None => line,
    }
}

//! A command line to words, by the rules of POSIX shells, without a shell.
//!
//! Quotes, backslashes and comments work as in XCU 2.2 (Quoting) and 2.3 (Token Recognition) of POSIX.1-2024. What only
//! a shell could do (pipes, redirections, `$HOME`, `~`) is refused with the way to say it here, instead of being handed
//! to the program as text. `${…}` is one piece whatever stands in it: its value never splits a word. As in a shell, an empty
//! value leaves no word where nothing else is and no quotes are.

use super::mask;

/// A command line that cannot be split.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WordsError {
    /// Nothing to start.
    #[error("the command is empty; write the program and its arguments")]
    Empty,
    /// A quote without its partner.
    #[error("the quote `{quote}` at character {position} of the command isn't closed")]
    OpenQuote {
        /// `'` or `"`.
        quote: char,
        /// Where it stands, in characters from 1.
        position: usize,
    },
    /// Nothing follows the last backslash.
    #[error("the command ends in a backslash; remove it, or write `\\\\` for the character itself")]
    EndsInBackslash,
    /// Something that only a shell does.
    #[error(
        "`{text}` needs a shell, and none runs; put it in quotes if the program is to get it as it is, else write `sh -c '…'`"
    )]
    NeedsShell {
        /// The character or word.
        text: String,
    },
    /// `$NAME`.
    #[error(
        "`${name}` isn't filled in, as no shell runs; write `${{env.{name}}}`, or '${name}' in quotes for the text itself"
    )]
    ShellVariable {
        /// Name of the variable.
        name: String,
    },
    /// `~/…`.
    #[error("`~` isn't filled in, as no shell runs; write `${{env.HOME}}`")]
    Tilde,
    /// `NAME=value program`.
    #[error("`{assignment}` before the program needs a shell, and none runs; put it under `env`")]
    Assignment {
        /// The first such word.
        assignment: String,
    },
}

/// A command line in its parts.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CommandLine {
    /// `NAME=value` words before the program.
    pub assignments: Vec<(String, String)>,
    /// Program first, then its arguments. Never empty.
    pub words: Vec<String>,
}

/// Splits a line into words, none of which may be an assignment before the program.
///
/// # Errors
/// When the line is empty, a quote is open, or something in it needs a shell.
pub fn split(line: &str) -> Result<Vec<String>, WordsError> {
    filled(line, |word| Ok(word.to_owned()))
}

/// The same with every word filled in. One without quotes of which nothing is left vanishes (XCU 2.6.5, Field Splitting).
///
/// # Errors
/// As [`split`], or what `fill` says.
pub(super) fn filled<E: From<WordsError>>(
    line: &str,
    fill: impl Fn(&str) -> Result<String, E>,
) -> Result<Vec<String>, E> {
    let (assignments, words) = read(line)?;
    if let Some((name, value)) = assignments.first() {
        let value = if mask::looks_secret(name) { mask::MASK } else { value };
        return Err(WordsError::Assignment { assignment: format!("{name}={value}") }.into());
    }
    let mut found = Vec::with_capacity(words.len());
    for word in words {
        let text = fill(&word.text)?;
        if word.is_quoted || !text.is_empty() {
            found.push(text);
        }
    }
    if found.first().is_none_or(String::is_empty) { Err(WordsError::Empty.into()) } else { Ok(found) }
}

/// Splits a line into assignments before the program, the program, and its arguments.
///
/// # Errors
/// When there is no program, a quote is open, or something in the line needs a shell.
pub fn parse(line: &str) -> Result<CommandLine, WordsError> {
    let (assignments, words) = read(line)?;
    Ok(CommandLine { assignments, words: words.into_iter().map(|word| word.text).collect() })
}

/// `NAME=value` words before a program.
type Assignments = Vec<(String, String)>;

/// Assignments, and at least a program.
fn read(line: &str) -> Result<(Assignments, Vec<Word>), WordsError> {
    let (mut assignments, mut words) = (Vec::new(), Vec::new());
    let mut scanner = Scanner { characters: line.chars().collect(), position: 0 };
    while let Some(word) = scanner.word()? {
        match word.assignment() {
            Some(assignment) if words.is_empty() => assignments.push(assignment),
            _ => words.push(word),
        }
    }
    if words.first().is_none_or(|word| word.text.is_empty()) {
        Err(WordsError::Empty)
    } else {
        Ok((assignments, words))
    }
}

/// A line that splits into these words again.
#[must_use]
pub fn join(words: &[String]) -> String {
    let quoted = words.iter().map(|word| {
        let plain = !word.is_empty() && word.chars().all(|c| c.is_alphanumeric() || "_-./:,=+%@{}*?[]^!".contains(c));
        let is_assignment = Word { text: word.clone(), bare: word.len(), is_quoted: false }.assignment().is_some();
        if plain && !is_assignment { word.clone() } else { format!("'{}'", word.replace('\'', r"'\''")) }
    });
    quoted.collect::<Vec<_>>().join(" ")
}

/// One word that was read.
#[derive(Default)]
struct Word {
    text: String,
    /// Bytes at its start that stood outside quotes: only these can hold the `NAME=` of an assignment.
    bare: usize,
    /// Whether any of it stood in quotes or behind a backslash.
    is_quoted: bool,
}

impl Word {
    fn assignment(&self) -> Option<(String, String)> {
        let (name, value) = self.text.split_once('=')?;
        let starts_well = name.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
        let is_name = starts_well && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        (is_name && name.len() < self.bare).then(|| (name.to_owned(), value.to_owned()))
    }
}

struct Scanner {
    characters: Vec<char>,
    position: usize,
}

impl Scanner {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.characters.get(self.position + ahead).copied()
    }

    /// The next word; `None` at the end of the line.
    fn word(&mut self) -> Result<Option<Word>, WordsError> {
        loop {
            match self.peek(0) {
                None => return Ok(None),
                Some('#') => {
                    while self.peek(0).is_some_and(|c| c != '\n') {
                        self.position += 1;
                    }
                }
                Some('\\') if self.peek(1) == Some('\n') => self.position += 2,
                Some(character) if character.is_whitespace() => self.position += 1,
                Some(_) => break,
            }
        }
        let mut word = Word::default();
        let mut all_bare = true;
        while let Some(character) = self.peek(0) {
            match character {
                _ if character.is_whitespace() => break,
                '\'' | '"' => {
                    all_bare = false;
                    self.quoted(character, &mut word.text)?;
                }
                '\\' => {
                    all_bare = false;
                    self.escaped(&mut word.text)?;
                }
                '$' => self.dollar(&mut word.text)?,
                '|' | '&' | ';' | '<' | '>' | '(' | ')' | '`' => {
                    return Err(WordsError::NeedsShell { text: character.to_string() });
                }
                '~' if word.text.is_empty()
                    && all_bare
                    && self.peek(1).is_none_or(|c| c == '/' || c.is_whitespace()) =>
                {
                    return Err(WordsError::Tilde);
                }
                _ => {
                    word.text.push(character);
                    self.position += 1;
                }
            }
            if all_bare {
                word.bare = word.text.len();
            }
        }
        word.is_quoted = !all_bare;
        Ok(Some(word))
    }

    /// A quoted part; the position is at its opening quote.
    fn quoted(&mut self, quote: char, text: &mut String) -> Result<(), WordsError> {
        let opened = self.position;
        self.position += 1;
        loop {
            match self.peek(0) {
                None => return Err(WordsError::OpenQuote { quote, position: opened + 1 }),
                Some(character) if character == quote => {
                    self.position += 1;
                    return Ok(());
                }
                // Within double quotes a backslash escapes these only.
                Some('\\') if quote == '"' && matches!(self.peek(1), Some('"' | '\\' | '`' | '\n')) => {
                    self.escaped(text)?;
                }
                Some(character) => {
                    text.push(character);
                    self.position += 1;
                }
            }
        }
    }

    /// A backslash and what it protects.
    fn escaped(&mut self, text: &mut String) -> Result<(), WordsError> {
        match self.peek(1) {
            None => return Err(WordsError::EndsInBackslash),
            // A continued line.
            Some('\n') => {}
            Some(character) => text.push(character),
        }
        self.position += 2;
        Ok(())
    }

    /// A dollar outside quotes: `$$`, `${…}` (both for [`super::variables`]), or something for a shell.
    fn dollar(&mut self, text: &mut String) -> Result<(), WordsError> {
        match self.peek(1) {
            Some('$') => {
                text.push_str("$$");
                self.position += 2;
            }
            Some('{') => {
                let rest = &self.characters[self.position..];
                let length = rest.iter().position(|c| *c == '}').map_or(rest.len(), |end| end + 1);
                text.extend(&rest[..length]);
                self.position += length;
            }
            Some('(') => return Err(WordsError::NeedsShell { text: "$(".to_owned() }),
            Some(first) if first.is_ascii_alphabetic() || first == '_' => {
                let rest = self.characters[self.position + 1..].iter();
                let name = rest.take_while(|c| c.is_ascii_alphanumeric() || **c == '_').collect();
                return Err(WordsError::ShellVariable { name });
            }
            _ => {
                text.push('$');
                self.position += 1;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn words_are_what_a_shell_would_pass() {
        for (line, words) in [
            ("java -jar app.jar", vec!["java", "-jar", "app.jar"]),
            ("  a\t b \n c ", vec!["a", "b", "c"]),
            (r#"a 'b c' "d e" f\ g"#, vec!["a", "b c", "d e", "f g"]),
            (r#"a "" ''"#, vec!["a", "", ""]),
            (r#"a "x\"y\\z" 'x\y' "x\y""#, vec!["a", r#"x"y\z"#, r"x\y", r"x\y"]),
            ("a b'c'\"d\"e", vec!["a", "bcde"]),
            ("a # comment\nb", vec!["a", "b"]),
            ("a b#c '#d'", vec!["a", "b#c", "#d"]),
            ("a \\\n b", vec!["a", "b"]),
            ("sh -c 'a | b > $HOME && $(c)'", vec!["sh", "-c", "a | b > $HOME && $(c)"]),
            ("a ${port.app} x${env.OPTS:--Xms1g -Xmx1g}y", vec!["a", "${port.app}", "x${env.OPTS:--Xms1g -Xmx1g}y"]),
            ("a $$HOME 5$ $1", vec!["a", "$$HOME", "5$", "$1"]),
            ("a b=c ~x", vec!["a", "b=c", "~x"]),
            ("'A=1' b", vec!["A=1", "b"]),
            ("a * ? [x] !y", vec!["a", "*", "?", "[x]", "!y"]),
        ] {
            assert_eq!(split(line), Ok(words.into_iter().map(str::to_owned).collect()), "{line}");
        }
    }

    #[test]
    fn what_is_empty_vanishes_unless_it_is_quoted() {
        let line = r#"java ${var.jvm} "${var.jvm}" -D=${var.jvm} '' -jar app.jar"#;
        let with = |jvm: &str| filled(line, |word| Ok::<_, WordsError>(word.replace("${var.jvm}", jvm)));
        let words = |words: &[&str]| Ok(words.iter().map(|word| (*word).to_owned()).collect());
        assert_eq!(with(""), words(&["java", "", "-D=", "", "-jar", "app.jar"]));
        assert_eq!(filled("${var.jvm}", |_| Ok::<_, WordsError>(String::new())), Err(WordsError::Empty));
        assert_eq!(with("-Xa -Xb"), words(&["java", "-Xa -Xb", "-Xa -Xb", "-D=-Xa -Xb", "", "-jar", "app.jar"]));
    }

    #[test]
    fn what_needs_a_shell_is_refused() {
        for (line, error) in [
            ("", WordsError::Empty),
            (" # only a comment", WordsError::Empty),
            ("'' a", WordsError::Empty),
            ("a 'b", WordsError::OpenQuote { quote: '\'', position: 3 }),
            ("é \"b'", WordsError::OpenQuote { quote: '"', position: 3 }),
            ("a \\", WordsError::EndsInBackslash),
            ("a | b", WordsError::NeedsShell { text: "|".to_owned() }),
            ("a && b", WordsError::NeedsShell { text: "&".to_owned() }),
            ("a $(b)", WordsError::NeedsShell { text: "$(".to_owned() }),
            ("$HOME/bin/a", WordsError::ShellVariable { name: "HOME".to_owned() }),
            ("~/bin/a", WordsError::Tilde),
            ("A=1 b", WordsError::Assignment { assignment: "A=1".to_owned() }),
            ("TOKEN=abc b", WordsError::Assignment { assignment: "TOKEN=***".to_owned() }),
        ] {
            assert_eq!(split(line), Err(error), "{line}");
        }
    }

    #[test]
    fn assignments_are_kept_apart() {
        let parts = parse("A=1 B_2='x y' c D=3").expect("a command line");
        assert_eq!(parts.assignments, [("A".to_owned(), "1".to_owned()), ("B_2".to_owned(), "x y".to_owned())]);
        assert_eq!(parts.words, ["c", "D=3"]);
    }

    proptest! {
        #[test]
        fn no_line_panics(line in ".{0,60}") {
            let _ = parse(&line);
        }

        #[test]
        fn joined_words_come_back(
            program in ".{1,12}",
            arguments in prop::collection::vec("[a-z$ '\"\\\\=#~{}|é]{0,12}", 0..6),
        ) {
            let words = [vec![program], arguments].concat();
            prop_assert_eq!(split(&join(&words)), Ok(words));
        }
    }
}

//! Templates of minijinja, in one dialect: what is printed is escaped for HTML, and a line with nothing but a statement on it
//! leaves none behind.

use minijinja::value::Serde;
use minijinja::{AutoEscape, Environment, Error, syntax::SyntaxConfig};
use serde::Serialize;

/// Where templates are filled in.
///
/// # Errors
/// None that is known: the dialect is fixed.
pub fn environment() -> Result<Environment<'static>, Error> {
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_syntax(SyntaxConfig::builder().trim_blocks(true).lstrip_blocks(true).build()?);
    Ok(environment)
}

/// Fills a template in.
///
/// # Errors
/// What is wrong with the template, or with what it is given.
pub(super) fn render(template: &str, context: impl Serialize) -> Result<String, Error> {
    environment()?.render_str(template, Serde(context))
}

//! `findings.json`: the findings as they are. Its schema is `docs/findings.schema.json`.

use unladen_judge::findings::Findings;

pub(super) fn render(findings: &Findings) -> String {
    // Findings hold only types that JSON has, with string keys: nothing can fail.
    let mut json = serde_json::to_string_pretty(findings).unwrap_or_default();
    json.push('\n');
    json
}

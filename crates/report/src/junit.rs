//! Budgets as JUnit XML, for CI systems that show test results: a suite per variant, a test case per budget.
//!
//! Over budget is a *failure*. Undecided is an *error*: a test that could not be carried out, neither passed nor skipped. A
//! void study is one case with an error.

use quick_junit::{NonSuccessKind, Report, SerializeError, TestCase, TestCaseStatus, TestSuite};
use unladen_judge::findings::{BudgetLine, Findings, Outcome};

use super::view;

/// The findings' budgets as a JUnit report.
///
/// # Errors
/// When the XML cannot be written; none is known.
pub fn render(findings: &Findings) -> Result<String, SerializeError> {
    let mut report = Report::new(format!("unladen {}", view::clean(&findings.study)));
    if let Some(reason) = &findings.void {
        let mut suite = TestSuite::new(view::clean(&findings.study));
        suite.add_test_case(case("the study", not_passed(NonSuccessKind::Error, "void", reason)));
        report.add_test_suite(suite);
        return report.to_string();
    }
    for variant in &findings.variants {
        let lines: Vec<&BudgetLine> = findings.budgets.iter().filter(|line| line.variant == variant.name).collect();
        if lines.is_empty() {
            continue;
        }
        let mut suite = TestSuite::new(view::clean(&variant.label));
        suite.add_test_cases(lines.into_iter().map(|line| {
            let status = match line.outcome {
                Outcome::Pass => TestCaseStatus::success(),
                Outcome::Fail => not_passed(NonSuccessKind::Failure, "over budget", &line.words),
                Outcome::Undecided => not_passed(NonSuccessKind::Error, "undecided", &line.words),
            };
            let service = line.service.as_ref().map_or_else(String::new, |service| format!("@{service}"));
            case(&format!("{}{service} within {}", line.metric, line.limit), status)
        }));
        report.add_test_suite(suite);
    }
    report.to_string()
}

fn not_passed(kind: NonSuccessKind, what: &str, words: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::non_success(kind);
    status.set_type(what).set_message(view::clean(words));
    status
}

fn case(name: &str, status: TestCaseStatus) -> TestCase {
    let mut case = TestCase::new(view::clean(name), status);
    case.set_classname("unladen");
    case
}

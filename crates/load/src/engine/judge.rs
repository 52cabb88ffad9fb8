//! What an answer is worth: by the plan's check, and by what a script looks for in it.

use crate::bodies::Bodies;
use crate::http1::response::{Body, Response};
use crate::plan::Check;
use crate::record::Recorder;
use crate::request::{Answer, Failure};
use crate::script::{Progress, Script, Verdict, WholeAnswer};

/// What an answer is worth.
#[inline]
fn judge(check: &Check, bodies: &mut Bodies, response: &Response<'_>, arrived: u64) -> Answer {
    let failure = if check.status.map_or(response.status >= 400, |wanted| response.status != wanted) {
        Some(Failure::Status)
    } else if check.length.is_some_and(|wanted| response.body.length() != wanted) {
        Some(Failure::Length)
    } else {
        None
    };
    let class = match &response.body {
        Body::Whole(bytes) => bodies.whole(bytes),
        Body::Pieces(hash) => bodies.hashed(hash),
    };
    Answer { arrived, status: response.status, class, failure, asks_again: false }
}

/// What an answer in a lane is worth, whatever is asked there: a step of the script, or the one request of a plan without.
#[inline]
pub(super) fn weigh(
    (script, progress): (Option<&Script>, Option<&mut Progress>),
    check: &Check,
    recorder: &mut Recorder,
    response: &Response<'_>,
    captured: (&[u8], &[u8]),
    arrived: u64,
) -> Answer {
    match (script, progress) {
        (Some(script), Some(progress)) => look(script, progress, recorder, response, captured, arrived),
        _ => judge(check, &mut recorder.bodies, response, arrived),
    }
}

/// What an answer to a step of a script is worth.
fn look(
    script: &Script,
    progress: &mut Progress,
    recorder: &mut Recorder,
    response: &Response<'_>,
    captured: (&[u8], &[u8]),
    arrived: u64,
) -> Answer {
    let Some(step) = script.steps().get(progress.step) else {
        return judge(&Check::default(), &mut recorder.bodies, response, arrived);
    };
    let mut answer = judge(&step.check, &mut recorder.bodies, response, arrived);
    if !step.looks() {
        return answer;
    }
    let whole = match &response.body {
        Body::Whole(body) => WholeAnswer::new(response.status, response.head, body),
        Body::Pieces(_) => WholeAnswer::new(response.status, captured.0, captured.1),
    };
    let verdict = script.look(progress, &whole, &mut recorder.tests);
    let failure = match verdict {
        Verdict::Redirected => {
            // Whatever status is wanted in the end, this one is not the end.
            answer.failure = None;
            recorder.redirected += 1;
            None
        }
        Verdict::CannotFollow => Some(Failure::Redirect),
        Verdict::Good | Verdict::NotYet => None,
        Verdict::TestFailed => Some(Failure::Check),
        Verdict::NothingToCapture => Some(Failure::Capture),
    };
    answer.failure = answer.failure.or(failure);
    answer.asks_again = verdict == Verdict::NotYet && answer.failure.is_none();
    answer
}

//! AWS X-Ray's daemon, as its SDKs see it (<https://docs.aws.amazon.com/xray/latest/devguide/xray-api-sendingdata.html>): segments as
//! datagrams of UDP, and on the port of the same number of TCP the questions how to sample. Those are answered as by an account
//! without rules of its own, so that the SDKs do the work that they do in production. A request that says whether it is sampled is
//! obeyed whatever the rules.
//!
//! Nobody waits for an answer to a datagram. While the store is behind, datagrams wait in the socket; those that find no room there are
//! lost, and the kernel's count of them goes into the summary.

use std::rc::Rc;
use std::time::{Duration, Instant};

use http::{Response, StatusCode};
use serde_json::json;
use tokio::sync::watch;
use unladen_decode::loss::{LossCount, Stage};
use unladen_decode::span::{Protocol, Source};
use unladen_decode::xray::decode;

use crate::answer::Reply;
use crate::datagrams::Datagrams;
use crate::hub::{Hub, Refused};
use crate::inbound::Request;
use crate::web::{self, Failure, JSON};

const RULES: &str = "/GetSamplingRules";
const TARGETS: &str = "/SamplingTargets";

/// When the rules were changed last, Unix time in seconds: long ago, but not 0, which Node.js's SDK takes for none.
const MODIFIED: f64 = 1.0;

/// Pause after a datagram could not be received or stored.
const PAUSE: Duration = Duration::from_millis(50);
/// How often what was lost is looked at, while datagrams come.
const LOOK: Duration = Duration::from_secs(1);

/// Takes the spans of datagrams until told to stop, and then those that wait already.
pub(crate) async fn receive(hub: Rc<Hub>, mut datagrams: Datagrams, mut stop: watch::Receiver<bool>) {
    let mut looked = Instant::now();
    loop {
        let received = tokio::select! {
            received = datagrams.next() => received,
            _ = stop.changed() => break,
        };
        match received {
            Ok(datagram) => take(&hub, datagram).await,
            Err(_) => tokio::time::sleep(PAUSE).await,
        }
        if looked.elapsed() > LOOK {
            looked = Instant::now();
            report(&hub, &mut datagrams);
        }
    }
    while let Some(datagram) = datagrams.waiting() {
        take(&hub, datagram).await;
    }
    report(&hub, &mut datagrams);
}

/// Has a datagram's spans taken, as soon as the store can: nobody sends it again.
async fn take(hub: &Hub, datagram: &[u8]) {
    hub.body(datagram.len());
    while let Err(Refused::Busy) = hub.accept(Protocol::Xray, datagram, decode).await {
        tokio::time::sleep(PAUSE).await;
    }
}

/// Tells of datagrams that found no room. Whose they were and how many spans they had nobody knows: at least one each.
fn report(hub: &Hub, datagrams: &mut Datagrams) {
    if let Some(spans @ 1..) = datagrams.dropped() {
        hub.reported(LossCount {
            source: Source::default(),
            stage: Stage::Socket,
            metric: b"udp drops",
            series: datagrams.number(),
            spans,
            is_cumulative: true,
        });
    }
}

/// Answers one request.
pub(crate) async fn serve(hub: &Hub, request: Request) -> Response<Reply> {
    match answer(hub, request).await {
        Ok(answer) => web::reply(StatusCode::OK, JSON, answer.to_string()),
        Err(failure) => failure.plain(),
    }
}

async fn answer(hub: &Hub, request: Request) -> Result<serde_json::Value, Failure> {
    web::expect_post(&request, &[RULES, TARGETS], "the port of the same number over UDP")?;
    let answer = if request.uri().path() == RULES { rules() } else { targets() };
    web::receive(hub, request).await?;
    Ok(answer)
}

/// The rule that every account begins with: one request a second, and 5 % of the others.
fn rules() -> serde_json::Value {
    let rule = json!({
        "RuleName": "Default",
        "RuleARN": "arn:aws:xray:us-east-1:000000000000:sampling-rule/Default",
        "ResourceARN": "*",
        "Priority": 10_000,
        "FixedRate": 0.05,
        "ReservoirSize": 1,
        "ServiceName": "*",
        "ServiceType": "*",
        "Host": "*",
        "HTTPMethod": "*",
        "URLPath": "*",
        "Version": 1,
        "Attributes": {},
    });
    json!({ "SamplingRuleRecords": [{ "SamplingRule": rule, "CreatedAt": 0.0, "ModifiedAt": MODIFIED }] })
}

/// No share of the rule is handed out: without one an SDK borrows one request a second.
fn targets() -> serde_json::Value {
    json!({ "SamplingTargetDocuments": [], "LastRuleModification": MODIFIED, "UnprocessedStatistics": [] })
}

#[cfg(test)]
mod tests {
    use std::net::{SocketAddr, UdpSocket};

    use super::*;
    use crate::config::Config;

    #[tokio::test]
    async fn what_waits_is_taken_and_what_found_no_room_is_told() {
        let any = SocketAddr::from(([127, 0, 0, 1], 0));
        let datagrams = Datagrams::with_room(None, any, 1).expect("a socket");
        let sender = UdpSocket::bind(any).expect("a socket");
        let sent = 1_000;
        for number in 1..=sent {
            let datagram = format!(
                "{{\"format\":\"json\",\"version\":1}}\n{{\"name\":\"pets\",\"id\":\"{number:016x}\",\
                 \"trace_id\":\"1-00000000-{number:024x}\",\"start_time\":1,\"end_time\":2}}"
            );
            sender.send_to(datagram.as_bytes(), datagrams.address()).expect("sent");
        }
        let hub = Rc::new(Hub::new(&Config { store: false, ..Config::default() }, None));
        let (stop, stopped) = watch::channel(false);
        stop.send_replace(true);
        receive(Rc::clone(&hub), datagrams, stopped).await;
        let summary = hub.summary();
        assert!((1..sent).contains(&summary.saved), "{} of {sent}", summary.saved);
        let [told] = &summary.reported_losses[..] else { panic!("one loss") };
        assert_eq!((told.service.as_str(), told.stage.as_str()), ("unknown_service", "socket"));
        assert_eq!(summary.saved + told.spans, sent);
    }
}

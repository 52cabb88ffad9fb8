//! What the spans say: traces of three, an HTTP server that asks MySQL and Redis, with 26 attributes, from one resource
//! with ten.

use opentelemetry_proto::tonic::common::v1::{AnyValue, KeyValue, any_value::Value};

use crate::batches::Random;

/// Name, OpenTelemetry's number of the kind, and attributes.
pub(crate) type SpanParts = (&'static str, i32, Vec<KeyValue>);

/// Span 0 of a trace is the server's, 1 the call of MySQL, 2 that of Redis.
pub(crate) fn span(place: usize, random: &mut Random) -> SpanParts {
    match place % 3 {
        0 => server(random),
        1 => mysql(random),
        _ => redis(random),
    }
}

/// An attribute as text, as the formats want it that know nothing else; with quotes where JSON has them.
pub(crate) fn as_text(attribute: &KeyValue, quoted: bool) -> String {
    match attribute.value.as_ref().and_then(|value| value.value.as_ref()) {
        Some(Value::StringValue(text)) if quoted => format!("\"{text}\""),
        Some(Value::StringValue(text)) => text.clone(),
        Some(Value::IntValue(number)) => number.to_string(),
        _ => String::new(),
    }
}

fn text(key: &str, value: impl Into<String>) -> KeyValue {
    attribute(key, Value::StringValue(value.into()))
}

fn number(key: &str, value: u64) -> KeyValue {
    attribute(key, Value::IntValue(value as i64))
}

fn attribute(key: &str, value: Value) -> KeyValue {
    KeyValue { key: key.into(), value: Some(AnyValue { value: Some(value) }), ..Default::default() }
}

/// Attributes of the process.
pub(crate) fn resource() -> Vec<KeyValue> {
    vec![
        text("service.name", "petclinic"),
        text("service.instance.id", "petclinic-7d9c6b5f4-x2x7k"),
        text("service.version", "3.4.1"),
        text("deployment.environment.name", "production"),
        text("host.name", "node-17"),
        text("os.type", "linux"),
        number("process.pid", 4711),
        text("telemetry.sdk.name", "opentelemetry"),
        text("telemetry.sdk.language", "go"),
        text("telemetry.sdk.version", "1.45.0"),
    ]
}

fn server(random: &mut Random) -> SpanParts {
    let route = random.of(&["/owners/{id}", "/owners/{id}/pets", "/vets", "/visits/{id}"]);
    let attributes = vec![
        text("http.request.method", random.of(&["GET", "GET", "GET", "POST"])),
        text("url.scheme", "http"),
        text("url.path", route.replace("{id}", &random.below(10_000).to_string())),
        text("http.route", route),
        number("http.response.status_code", if random.below(50) == 0 { 404 } else { 200 }),
        text("server.address", "petclinic.shop.svc"),
        number("server.port", 8080),
        text("client.address", format!("10.2.{}.{}", random.below(4), random.below(250))),
        text("network.protocol.version", "1.1"),
        text("user_agent.original", format!("Mozilla/5.0 (X11; Linux x86_64; rv:{}.0)", 100 + random.below(30))),
    ];
    let name = match route {
        "/owners/{id}" => "GET /owners/{id}",
        "/owners/{id}/pets" => "GET /owners/{id}/pets",
        "/vets" => "GET /vets",
        _ => "GET /visits/{id}",
    };
    (name, 2, attributes)
}

fn mysql(random: &mut Random) -> SpanParts {
    let table = random.of(&["owners", "pets", "vets", "visits"]);
    let attributes = vec![
        text("db.system.name", "mysql"),
        text("db.namespace", "petclinic"),
        text("db.operation.name", "SELECT"),
        text("db.collection.name", table),
        text(
            "db.query.text",
            format!("SELECT id, name, city, telephone FROM {table} WHERE id = ? ORDER BY name LIMIT 20"),
        ),
        text("server.address", "mysql.shop.svc"),
        number("server.port", 3306),
        number("thread.id", random.below(64)),
    ];
    ("SELECT petclinic", 3, attributes)
}

fn redis(random: &mut Random) -> SpanParts {
    let attributes = vec![
        text("db.system.name", "redis"),
        text("db.operation.name", "GET"),
        text("db.query.text", format!("GET owner:{}", random.below(10_000))),
        text("server.address", "redis.shop.svc"),
        number("server.port", 6379),
        text("network.peer.address", "10.96.14.3"),
        number("network.peer.port", 6379),
        number("thread.id", random.below(64)),
    ];
    ("GET", 3, attributes)
}

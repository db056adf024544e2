//! Tests a client with a scripted broker that speaks TLS. The certificates are from
//! orchestrator/software/tls/certificates.py, with keys that nothing else uses.

use super::*;
use rustls::crypto::ring;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::sync::Arc;

const CA: &str = include_str!("../certificates/ca.pem");
const FOREIGN: &str = include_str!("../certificates/foreign.pem");
const CLIENT: (&str, &str) = (
    include_str!("../certificates/client.pem"),
    include_str!("../certificates/client.key"),
);
const SERVER: (&str, &str) = (
    include_str!("../certificates/server.pem"),
    include_str!("../certificates/server.key"),
);

type Stream = StreamOwned<ServerConnection, TcpStream>;

/// Returns the settings of a broker that requires a client certificate.
fn mutual() -> Arc<ServerConfig> {
    let mut roots = RootCertStore::empty();
    let pem = |text: &str| CertificateDer::from_pem_slice(text.as_bytes()).unwrap();
    roots.add(pem(CA)).unwrap();
    let provider = Arc::new(ring::default_provider());
    let verifier = WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
    let key = PrivateKeyDer::from_pem_slice(SERVER.1.as_bytes()).unwrap();
    let config = ServerConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(verifier.build().unwrap())
        .with_single_cert(vec![pem(SERVER.0)], key);
    Arc::new(config.unwrap())
}

fn accept_tls(listener: &TcpListener, config: &Arc<ServerConfig>) -> Stream {
    let (stream, _) = listener.accept().unwrap();
    let limit = Some(Duration::from_secs(5));
    stream.set_read_timeout(limit).unwrap();
    StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream)
}

fn tls(versions: &[&str], ca: &str, server_name: &str) -> Value {
    json!({"ca": ca, "cert": CLIENT.0, "key": CLIENT.1, "server_name": server_name, "versions": versions})
}

fn publishes(port: u16, tls: Value) -> Box<dyn Role> {
    let spec = json!({"version": "3.1.1", "port": port, "subscribe": [], "tls": tls});
    client_of(spec, true, json!({}))
}

/// Returns the details of the client's records of this kind.
fn details<'a>(records: &'a str, what: &str) -> Vec<&'a str> {
    let start = format!("C,c,{what},");
    let lines = records.lines().filter(|l| l.starts_with(&start));
    lines.map(|l| l.rsplit(',').next().unwrap()).collect()
}

#[test]
fn messages_of_both_versions_are_settled_and_the_session_is_resumed() {
    for (version, name) in [("1.2", "TLSv1_2"), ("1.3", "TLSv1_3")] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let broker = spawn(move || {
            let config = mutual();
            let mut first = accept_tls(&listener, &config);
            assert_eq!(packet(&mut first).unwrap().0, 1);
            first.write_all(&CONNACK).unwrap();
            assert_eq!(packet(&mut first).unwrap().0, PUBLISH);
            drop(first);
            let mut second = accept_tls(&listener, &config);
            let server_name = |stream: &Stream| stream.conn.server_name().map(str::to_owned);
            assert_eq!(packet(&mut second).unwrap().0, 1);
            second.write_all(&CONNACK_SESSION).unwrap();
            (server_name(&second), acknowledge(&mut second).len())
        });
        let mut client = publishes(port, tls(&[version], CA, "server"));
        let records = drive(&mut *client, |c, _| c.totals().settled == MESSAGES);
        assert_eq!(client.totals().settled, MESSAGES, "{records}");
        let handshakes = details(&records, "tls");
        assert!(handshakes[0].starts_with(name), "{records}");
        assert!(handshakes[0].ends_with("full handshake"), "{records}");
        assert!(handshakes[1].ends_with("resumed"), "{records}");
        let server_name = Some("server".to_owned());
        assert_eq!(broker.join().unwrap(), (server_name, MESSAGES as usize));
    }
}

#[test]
fn a_foreign_certificate_and_another_name_are_refused_in_words() {
    for (ca, server_name, why) in [
        (FOREIGN, "server", "UnknownIssuer"),
        (CA, "elsewhere", "not valid for name"),
    ] {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let broker = spawn(move || packet(&mut accept_tls(&listener, &mutual())));
        let mut client = publishes(port, tls(&["1.3"], ca, server_name));
        let records = drive(&mut *client, |_, text| text.contains("C,c,failed"));
        assert!(
            records.contains("TLS: invalid peer certificate"),
            "{records}"
        );
        assert!(records.contains(why), "{records}");
        assert_eq!(broker.join().unwrap(), None);
    }
}

#[test]
fn settings_that_are_no_certificates_are_refused_when_armed() {
    let spec = |tls| json!({"version": "3.1.1", "port": 1, "subscribe": [], "tls": tls});
    for (tls, why) in [
        (tls(&["1.3"], "", "server"), "tls.ca: holds no certificate"),
        (tls(&["1.1"], CA, "server"), "tls.versions: \"1.1\""),
        (tls(&["1.3"], CA, "no name"), "tls.server_name: "),
    ] {
        let error = try_client_of(spec(tls), false, json!({})).err().unwrap();
        assert!(error.contains(why), "{error}");
    }
}

//! Tests the two sides of HTTP/2 with each other, however the bytes between them are cut.

use super::*;

/// Moves bytes between both sides in pieces of `step` until none is left, and lets the server answer each
/// body by `answer`; returns the bodies of the answers.
fn exchange(
    client: &mut Client<u32>,
    server: &mut Server,
    step: usize,
    answer: impl Fn(&[u8]) -> Option<Vec<u8>>,
) -> Vec<Vec<u8>> {
    let mut got = Vec::new();
    loop {
        let mut bytes = Vec::new();
        client.drain(&mut bytes);
        for piece in bytes.chunks(step) {
            server.feed(piece).unwrap();
            while let Some(request) = server.next().unwrap() {
                let body = answer(&request.body);
                server.answer(request, body).unwrap();
            }
        }
        let mut back = Vec::new();
        server.drain(&mut back);
        for piece in back.chunks(step) {
            client.feed(piece, |body| got.push(body.to_vec())).unwrap();
        }
        if bytes.is_empty() && back.is_empty() {
            return got;
        }
    }
}

#[test]
fn requests_and_answers_of_all_sizes_come_whole() {
    for step in [1, 1000, 1 << 20] {
        let (mut client, mut server) = (Client::new().unwrap(), Server::new());
        for (key, size) in [(1, 1), (2, 40_000), (3, 300_000), (4, 28)] {
            if step == 1 && size > 100_000 {
                continue;
            }
            assert!(client.free());
            client
                .request(key, "h", "/a", false, vec![key as u8; size])
                .unwrap();
            let twice = |body: &[u8]| Some([body, body].concat());
            let got = exchange(&mut client, &mut server, step, twice);
            assert_eq!(got, [vec![key as u8; 2 * size]], "{step} {size}");
        }
    }
}

#[test]
fn a_body_larger_than_the_first_window_waits_for_room_and_holds_the_next() {
    let (mut client, mut server) = (Client::new().unwrap(), Server::new());
    client
        .request(1, "h", "/", false, vec![7; 200_000])
        .unwrap();
    assert!(
        client.holds() && !client.free(),
        "65,535 bytes may leave at first"
    );
    let got = exchange(&mut client, &mut server, 5000, |body| {
        Some(body[..9].to_vec())
    });
    assert_eq!(got, [vec![7; 9]]);
    assert!(!client.holds() && client.free());
}

#[test]
fn many_requests_share_a_connection_and_answers_come_as_they_are_ready() {
    let (mut client, mut server) = (Client::new().unwrap(), Server::new());
    for key in 0..50 {
        client
            .request(key, "h", "/", true, vec![key as u8; 10])
            .unwrap();
    }
    let mut got = exchange(&mut client, &mut server, 77, |body| Some(body.to_vec()));
    got.sort();
    assert_eq!(got.len(), 50);
    assert!(
        got.iter()
            .enumerate()
            .all(|(key, body)| *body == vec![key as u8; 10])
    );
}

#[test]
fn a_refused_request_has_an_empty_answer() {
    let (mut client, mut server) = (Client::new().unwrap(), Server::new());
    client.request(1, "h", "/", false, vec![1; 10]).unwrap();
    assert_eq!(exchange(&mut client, &mut server, 9, |_| None), [b""]);
}

#[test]
fn a_forgotten_request_ends_its_stream_alone() {
    let (mut client, mut server) = (Client::new().unwrap(), Server::new());
    client.request(1, "h", "/", false, vec![1; 10]).unwrap();
    client.request(2, "h", "/", false, vec![2; 10]).unwrap();
    client.forget(|key| *key == 2).unwrap();
    let got = exchange(&mut client, &mut server, 50, |body| Some(body.to_vec()));
    assert_eq!(got, [vec![2; 10]]);
    client.request(3, "h", "/", false, vec![3; 10]).unwrap();
    let got = exchange(&mut client, &mut server, 50, |body| Some(body.to_vec()));
    assert_eq!(got, [vec![3; 10]]);
}

#[test]
fn bytes_that_are_no_http2_are_an_error() {
    let mut server = Server::new();
    assert!(server.feed(b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").is_err());
    let mut client = Client::<u32>::new().unwrap();
    let error = client
        .feed(b"HTTP/1.1 400 Bad Request\r\n\r\n", |_| {})
        .unwrap_err();
    assert!(error.starts_with("HTTP/2: "), "{error}");
}

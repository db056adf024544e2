//! Sends or takes messages over UDP: both send|take PORT.

mod vnet_accounting;

use std::net::UdpSocket;
use vnet_accounting::Accounting;

fn main() -> std::io::Result<()> {
    let [mode, port] = [1, 2].map(|at| std::env::args().nth(at).expect("both send|take PORT"));
    let mut account = Accounting::open();
    if mode == "send" {
        let socket = UdpSocket::bind("0.0.0.0:0")?;
        for message in account.due() {
            let sent_ns = account.now_ns();
            let text = format!("{} {} ", message.flow, message.seq);
            let text = format!("{text:.<width$}", width = message.size as usize);
            for (_, address) in &message.to {
                socket.send_to(text.as_bytes(), format!("{address}:{port}"))?;
            }
            account.sent(&message, sent_ns);
        }
        return Ok(());
    }
    let socket = UdpSocket::bind(format!("0.0.0.0:{port}"))?;
    account.listening();
    println!("listening");
    let mut text = [0; 65536];
    loop {
        let size = socket.recv(&mut text)?;
        let said = String::from_utf8_lossy(&text[..size]);
        let mut words = said.split(' ');
        if let (Some(Ok(flow)), Some(Ok(seq))) = (words.next().map(str::parse), words.next().map(str::parse)) {
            account.received(flow, seq, false);
        }
    }
}

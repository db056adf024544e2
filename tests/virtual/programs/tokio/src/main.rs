//! Serves lines on port 9000, or asks a server 4 x 25 times from four tasks on two threads, as its argument says.

use std::time::Duration;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};

async fn answer(stream: TcpStream) -> std::io::Result<()> {
    let (read, mut write) = stream.into_split();
    let mut lines = BufReader::new(read).lines();
    while let Some(line) = lines.next_line().await? {
        write.write_all(format!("{line}\n").as_bytes()).await?;
    }
    Ok(())
}

async fn ask(server: String, one: usize) -> std::io::Result<usize> {
    let (read, mut write) = TcpStream::connect((server.as_str(), 9000)).await?.into_split();
    let mut lines = BufReader::new(read).lines();
    let mut right = 0;
    for number in 0..25 {
        let line = format!("{one} {number}");
        write.write_all(format!("{line}\n").as_bytes()).await?;
        right += usize::from(lines.next_line().await? == Some(line));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(right)
}

#[tokio::main(worker_threads = 2)]
async fn main() -> std::io::Result<()> {
    if let Some(server) = std::env::args().nth(1) {
        let tasks: Vec<_> = (0..4).map(|one| tokio::spawn(ask(server.clone(), one))).collect();
        let mut right = 0;
        for task in tasks {
            right += task.await.expect("no panic")?;
        }
        println!("right {right}");
        return Ok(());
    }
    let listener = TcpListener::bind("0.0.0.0:9000").await?;
    println!("listening");
    loop {
        let (stream, _) = listener.accept().await?;
        tokio::spawn(answer(stream));
    }
}

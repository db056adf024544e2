//! `vnet-reduce IN.pcap OUT.parquet` reduces a packet capture to a Parquet table with one row per packet.
//!
//! docs/contracts/packets.md describes the columns. Memory does not grow with the file: a small window reads
//! the input, rows leave in groups of at most 262,144, and the table of connections has a fixed size.

mod analysis;
mod chunk;
mod columns;
mod connection;
mod connections;
mod decode;
mod dissect;
mod encode;
mod flows;
mod fold;
mod follow;
mod frame;
mod network;
mod options;
mod output;
mod packet;
mod pcap;
mod pcapng;
mod reduce;
mod summary;
mod table;
mod window;

#[cfg(feature = "fuzzing")]
pub use reduce::fuzz;
use std::process::ExitCode;

/// Runs the reducer with the arguments of the command line, and prints the summary as JSON. The exit code is
/// 2 for invalid arguments and 1 for other errors; messages go to standard error.
pub fn main() -> ExitCode {
    let options = match options::parse(std::env::args().skip(1)) {
        Ok(Some(options)) => options,
        Ok(None) => return ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("vnet-reduce: {error}\n{}", options::USAGE);
            return ExitCode::from(2);
        }
    };
    match reduce::run(&options) {
        Ok(summary) => {
            println!("{}", summary.json());
            ExitCode::SUCCESS
        }
        Err(error) => {
            eprintln!("vnet-reduce: {error}");
            ExitCode::FAILURE
        }
    }
}

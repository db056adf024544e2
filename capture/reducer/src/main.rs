//! `vnet-reduce IN.pcap OUT.parquet`: reduces a packet capture to a Parquet table, one row a packet.

fn main() {}

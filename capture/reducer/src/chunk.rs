//! Compresses a column's pages and appends them to a row group.

use std::io::Write;

use bytes::Bytes;
use parquet::basic::{Compression, Encoding};
use parquet::column::page::{CompressedPage, Page, PageWriteSpec, PageWriter};
use parquet::column::writer::ColumnCloseResult;
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::file::writer::{SerializedPageWriter, SerializedRowGroupWriter, TrackedWrite};
use parquet::schema::types::ColumnDescPtr;

use crate::encode::Pages;

/// The encoded pages of one column of a row group. `entries` counts nulls too; `levels` holds the bytes of
/// the page before the values.
pub struct Chunk {
    pub levels: Vec<u8>,
    pub entries: usize,
    pub pages: Pages,
}

/// Returns the page compressed by LZ4 if that makes it more than 10 % smaller. Otherwise returns the page
/// unchanged, which saves readers time, and sets `compression` to uncompressed.
fn compress(raw: Vec<u8>, compression: &mut Compression) -> Vec<u8> {
    let small = lz4_flex::block::compress(&raw);
    if small.len() * 10 < raw.len() * 9 {
        return small;
    }
    *compression = Compression::UNCOMPRESSED;
    raw
}

/// Appends `chunk` as the next column of `group`, which has `rows` rows. Compresses its pages by LZ4 if that
/// makes the data page more than 10 % smaller.
pub fn append<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    descriptor: ColumnDescPtr,
    rows: usize,
    chunk: Chunk,
) -> Result<()> {
    let Chunk {
        levels: mut body,
        entries,
        pages,
    } = chunk;
    body.extend_from_slice(&pages.values);
    let data_size = body.len();
    let mut compression = Compression::LZ4_RAW;
    let body = compress(body, &mut compression);
    let mut sink = TrackedWrite::new(Vec::new());
    let mut writer = SerializedPageWriter::new(&mut sink);
    let dictionary = match pages.dictionary {
        Some((page, count)) => Some(write_dictionary(&mut writer, page, count, compression)?),
        None => None,
    };
    let page = Page::DataPage {
        buf: Bytes::from(body),
        num_values: entries as u32,
        encoding: pages.encoding,
        def_level_encoding: Encoding::RLE,
        rep_level_encoding: Encoding::RLE,
        statistics: None,
    };
    let data = writer.write_page(CompressedPage::new(page, data_size))?;
    let bytes = Bytes::from(sink.into_inner()?);
    let metadata = describe(
        descriptor,
        compression,
        pages.encoding,
        entries,
        dictionary.as_ref(),
        &data,
    )?;
    let close = ColumnCloseResult {
        bytes_written: bytes.len() as u64,
        rows_written: rows as u64,
        metadata,
        bloom_filter: None,
        column_index: None,
        offset_index: None,
    };
    group.append_column(&bytes, close)
}

fn write_dictionary(
    writer: &mut impl PageWriter,
    page: Vec<u8>,
    count: u32,
    compression: Compression,
) -> Result<PageWriteSpec> {
    let size = page.len();
    let page = match compression {
        Compression::LZ4_RAW => lz4_flex::block::compress(&page),
        _ => page,
    };
    let buf = Bytes::from(page);
    let page = Page::DictionaryPage {
        buf,
        num_values: count,
        encoding: Encoding::PLAIN,
        is_sorted: false,
    };
    writer.write_page(CompressedPage::new(page, size))
}

fn describe(
    descriptor: ColumnDescPtr,
    compression: Compression,
    encoding: Encoding,
    entries: usize,
    dictionary: Option<&PageWriteSpec>,
    data: &PageWriteSpec,
) -> Result<ColumnChunkMetaData> {
    let of_dictionary = |size: fn(&PageWriteSpec) -> usize| dictionary.map_or(0, size);
    let compressed = data.compressed_size + of_dictionary(|spec| spec.compressed_size);
    let uncompressed = data.uncompressed_size + of_dictionary(|spec| spec.uncompressed_size);
    ColumnChunkMetaData::builder(descriptor)
        .set_compression(compression)
        .set_encodings(vec![Encoding::PLAIN, Encoding::RLE, encoding])
        .set_num_values(entries as i64)
        .set_total_compressed_size(compressed as i64)
        .set_total_uncompressed_size(uncompressed as i64)
        .set_data_page_offset(data.offset as i64)
        .set_dictionary_page_offset(dictionary.map(|spec| spec.offset as i64))
        .build()
}

package data

import (
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math/bits"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/parquet-go/parquet-go/encoding/delta"
	"github.com/parquet-go/parquet-go/encoding/thrift"
	"github.com/parquet-go/parquet-go/format"
	"github.com/pierrec/lz4/v4"

	"github.com/gsrc-dev/gsrc/internal/budget"
)

// parquet-go allocates what a file claims, and decompresses LZ4 into a buffer that it
// doubles at every error, so that a flipped bit can take all memory. What it would
// allocate is therefore looked at first: the lengths in the footer and in the headers of
// pages, each page decompressed into no more than its header says, and how many values
// its encoding repeats. See https://github.com/apache/parquet-format for the layout.

var errParquet = errors.New("the file is truncated or damaged")

// checkParquet returns how much memory reading a table takes at a time beside its rows,
// and how many there are. It claims from mem what it takes itself.
func checkParquet(b []byte, mem *budget.Reservation) (rows, bytes int64, err error) {
	if len(b) < 12 || string(b[:4]) != "PAR1" || string(b[len(b)-4:]) != "PAR1" {
		return 0, 0, errors.New("not a Parquet file, or a truncated one")
	}
	size := int64(binary.LittleEndian.Uint32(b[len(b)-8:]))
	if size > int64(len(b)-12) {
		return 0, 0, errParquet
	}
	footer := b[int64(len(b)-8)-size : len(b)-8]
	_, decoded, err := walkThrift(footer)
	if err != nil {
		return 0, 0, err
	}
	bytes = 2 * decoded // the library's and the one here
	if err := mem.Grow(bytes); err != nil {
		return 0, 0, err
	}
	defer mem.Shrink(bytes)
	var meta format.FileMetaData
	if err := unmarshalThrift(footer, &meta); err != nil {
		return 0, 0, err
	}
	if len(meta.Schema) < 2 || int(meta.Schema[0].NumChildren) != len(meta.Schema)-1 {
		return 0, 0, errors.New("columns are nested, or there are none")
	}
	columns := meta.Schema[1:]
	for _, c := range columns {
		if c.NumChildren != 0 || c.RepetitionType != nil && *c.RepetitionType == format.Repeated {
			return 0, 0, fmt.Errorf("the column %q is nested", c.Name)
		}
		half := c.LogicalType != nil && c.LogicalType.Float16 != nil && c.TypeLength != nil && *c.TypeLength == 2
		if c.Type == nil || *c.Type == format.FixedLenByteArray && !half || *c.Type == format.Int96 {
			return 0, 0, fmt.Errorf("the column %q is of type %v, which is not read", c.Name, c.Type)
		}
	}
	widest := make([]int64, len(columns))
	for g, group := range meta.RowGroups {
		if len(group.Columns) != len(columns) || group.NumRows < 0 || group.NumRows > meta.NumRows-rows {
			return 0, 0, errParquet
		}
		rows += group.NumRows
		for i := range columns {
			chunk := &group.Columns[i].MetaData
			if chunk.NumValues != group.NumRows || chunk.Type != *columns[i].Type || chunk.Codec != meta.RowGroups[0].Columns[i].MetaData.Codec {
				return 0, 0, errParquet
			}
			c := parquetChunk{file: b, meta: chunk, mem: mem, optional: columns[i].RepetitionType != nil && *columns[i].RepetitionType == format.Optional}
			if err := c.check(); err != nil {
				return 0, 0, fmt.Errorf("the column %q, row group %d: %w", columns[i].Name, g+1, err)
			}
			widest[i] = max(widest[i], c.dictionary+c.widest)
		}
	}
	if rows != meta.NumRows {
		return 0, 0, errParquet
	}
	const reader = 16 << 10 // of a column: its buffer
	for _, n := range widest {
		bytes += n + reader
	}
	return rows, bytes, nil
}

// parquetChunk is a column of a row group.
type parquetChunk struct {
	file     []byte
	meta     *format.ColumnMetaData
	mem      *budget.Reservation
	optional bool

	dictionary, widest int64 // memory of the dictionary, and of the page that takes most
}

func (c *parquetChunk) check() error {
	at := c.meta.DataPageOffset
	if c.meta.DictionaryPageOffset != 0 {
		at = c.meta.DictionaryPageOffset
	}
	n := c.meta.TotalCompressedSize
	if at < 0 || n < 0 || at > int64(len(c.file)) || n > int64(len(c.file))-at {
		return errParquet
	}
	left := c.meta.NumValues
	for section := c.file[at : at+n]; len(section) > 0; {
		size, _, err := walkThrift(section)
		if err != nil {
			return err
		}
		header := new(format.PageHeader)
		if err := unmarshalThrift(section[:size], header); err != nil {
			return err
		}
		section = section[size:]
		if header.CompressedPageSize < 0 || int(header.CompressedPageSize) > len(section) || header.UncompressedPageSize < 0 {
			return errParquet
		}
		values, err := c.page(header, section[:header.CompressedPageSize])
		if err != nil {
			return err
		}
		if left -= values; left < 0 {
			return errors.New("pages have more values than the table has rows")
		}
		section = section[header.CompressedPageSize:]
	}
	return nil
}

// page checks a page and returns how many of the column's values it has.
func (c *parquetChunk) page(h *format.PageHeader, body []byte) (values int64, err error) {
	v1, v2, dict := h.DataPageHeader, h.DataPageHeaderV2, h.DictionaryPageHeader
	if (h.Type == format.DataPage) != (v1 != nil) || (h.Type == format.DataPageV2) != (v2 != nil) || (h.Type == format.DictionaryPage) != (dict != nil) {
		return 0, errParquet
	}
	var encoding format.Encoding
	var levels []byte
	unpacked := int64(h.UncompressedPageSize)
	packed := c.meta.Codec != format.Uncompressed
	switch {
	case v1 != nil:
		values, encoding = int64(v1.NumValues), v1.Encoding
	case v2 != nil:
		values, encoding = int64(v2.NumValues), v2.Encoding
		n := int64(v2.DefinitionLevelsByteLength)
		if n < 0 || n > int64(len(body)) || n > unpacked || v2.RepetitionLevelsByteLength != 0 || v2.NumNulls < 0 || int64(v2.NumNulls) > values {
			return 0, errParquet
		}
		levels, body, unpacked = body[:n], body[n:], unpacked-n
		packed = packed && (v2.IsCompressed == nil || *v2.IsCompressed)
	case dict != nil:
		//lint:ignore SA1019 older writers use it
		if dict.Encoding != format.Plain && dict.Encoding != format.PlainDictionary {
			return 0, fmt.Errorf("a dictionary in the encoding %s is not read", dict.Encoding)
		}
		values, encoding = int64(dict.NumValues), format.Plain
	default:
		return 0, fmt.Errorf("a page of type %s is not read", h.Type)
	}
	if values < 0 || dict == nil && values > c.meta.NumValues || dict != nil && values > 8*unpacked {
		return 0, errParquet
	}
	// The page as it is in the file, unpacked, and its values with their levels, places
	// and positions in a dictionary.
	cost := int64(h.CompressedPageSize) + 2*int64(h.UncompressedPageSize) + 24*values
	if err := c.mem.Grow(cost); err != nil {
		return 0, err
	}
	defer func() { c.mem.Shrink(cost) }()
	if packed {
		if body, err = unpackPage(c.meta.Codec, body, unpacked); err != nil {
			return 0, err
		}
	}
	if c.optional && v1 != nil {
		if v1.DefinitionLevelEncoding != format.RLE || len(body) < 4 || int64(binary.LittleEndian.Uint32(body)) > int64(len(body)-4) {
			return 0, errParquet
		}
		n := 4 + int64(binary.LittleEndian.Uint32(body))
		levels, body = body[4:n], body[n:]
	}
	present := values
	if c.optional && dict == nil {
		if _, present, err = checkRuns(levels, 1, values); err != nil {
			return 0, err
		}
	}
	held, grown, err := checkValues(encoding, c.meta.Type, body, values, c.mem)
	if err != nil {
		return 0, err
	}
	if v2 != nil { // the library goes by this
		held = min(held, values-int64(v2.NumNulls))
	}
	if held < present { // the library would ask for the others for ever
		return 0, errors.New("a page has fewer values than its header says")
	}
	if dict != nil {
		c.dictionary = max(c.dictionary, cost)
		return 0, nil
	}
	c.widest = max(c.widest, cost+grown)
	return values, nil
}

// checkValues holds the number of values that an encoded page has against that of its
// header. It returns how many it has at least, and what they take beyond their encoded size
// and 24 bytes each.
func checkValues(e format.Encoding, kind format.Type, b []byte, values int64, mem *budget.Reservation) (held, grown int64, err error) {
	switch e {
	case format.Plain, format.ByteStreamSplit:
		return plainValues(kind, b), 0, nil
	//lint:ignore SA1019 older writers use it
	case format.PlainDictionary, format.RLEDictionary:
		if len(b) == 0 {
			return 0, 0, nil
		}
		held, _, err = checkRuns(b[1:], int(b[0]), values)
		return held, 0, err
	case format.RLE: // booleans
		if len(b) < 4 {
			return 0, 0, errParquet
		}
		held, _, err = checkRuns(b[4:], 1, values)
		return held, 0, err
	case format.DeltaBinaryPacked, format.DeltaLengthByteArray:
		held, err = checkDelta(b, values)
		return held, 0, err
	case format.DeltaByteArray:
		if held, err = checkDelta(b, values); err != nil {
			return 0, 0, err
		}
		// Every value repeats a prefix of the one before.
		prefixes, err := new(delta.BinaryPackedEncoding).DecodeInt32(nil, b)
		if err != nil {
			return 0, 0, err
		}
		for _, n := range prefixes {
			if n < 0 {
				return 0, 0, errParquet
			}
			grown += 3 * int64(n)
		}
		if err := mem.Grow(grown); err != nil {
			return 0, 0, err
		}
		mem.Shrink(grown)
		return held, grown, nil
	}
	return 0, 0, fmt.Errorf("values in the encoding %s are not read", e)
}

// plainValues counts the values of a page that has them one after another.
func plainValues(kind format.Type, b []byte) (n int64) {
	switch kind {
	case format.Boolean:
		return 8 * int64(len(b))
	case format.Int32, format.Float:
		return int64(len(b) / 4)
	case format.Int64, format.Double:
		return int64(len(b) / 8)
	case format.FixedLenByteArray: // of float16
		return int64(len(b) / 2)
	}
	for ; len(b) >= 4; n++ {
		size := int64(binary.LittleEndian.Uint32(b))
		if size > int64(len(b)-4) {
			break
		}
		b = b[4+size:]
	}
	return n
}

// checkRuns checks the hybrid of runs and bit-packed groups of 8. It returns how many values
// there are and, if they are bits, how many of them are set.
func checkRuns(b []byte, width int, values int64) (total, set int64, err error) {
	if width > 32 {
		return 0, 0, errParquet
	}
	for len(b) > 0 {
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, 0, errParquet
		}
		b = b[n:]
		count, size := u>>1, uint64(width+7)/8
		if u&1 != 0 { // of groups, which are padded at the end
			size = count * uint64(width)
			count *= 8
		}
		if u>>1 > uint64(values) || size > uint64(len(b)) {
			return 0, 0, errParquet
		}
		switch {
		case width != 1:
		case u&1 == 0 && b[0] != 0:
			set += int64(count)
		case u&1 != 0:
			for i, group := range b[:size] {
				if left := values - total - 8*int64(i); left < 8 {
					group &= 1<<max(left, 0) - 1
				}
				set += int64(bits.OnesCount8(group))
			}
		}
		if total += int64(count); total > values+7 {
			return 0, 0, errors.New("a page repeats more values than it has")
		}
		b = b[size:]
	}
	return total, set, nil
}

// checkDelta checks the header of delta-encoded integers, and returns how many there are.
func checkDelta(b []byte, values int64) (total int64, err error) {
	for field := range 3 { // values in a block, blocks in it, values in all
		u, n := binary.Uvarint(b)
		if n <= 0 {
			return 0, errParquet
		}
		if field < 2 && u > 1<<16 || field == 2 && u > uint64(values) {
			return 0, errors.New("a page holds more values than its header says")
		}
		total, b = int64(u), b[n:]
	}
	return total, nil
}

// unpackPage decompresses a page of that many bytes, and no more.
func unpackPage(codec format.CompressionCodec, b []byte, size int64) ([]byte, error) {
	wrong := fmt.Errorf("a page does not unpack to the %d bytes that its header says", size)
	switch codec {
	case format.Snappy:
		if n, err := snappy.DecodedLen(b); err != nil || int64(n) != size {
			return nil, wrong
		}
		return snappy.Decode(nil, b)
	case format.Lz4Raw:
		out := make([]byte, size)
		if n, err := lz4.UncompressBlock(b, out); err != nil || int64(n) != size {
			return nil, wrong
		}
		return out, nil
	case format.Zstd:
		// The window of a stream may be larger than what is in it.
		r, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(1), zstd.WithDecoderMaxMemory(uint64(max(size, 8<<20))))
		if err != nil {
			return nil, err
		}
		defer r.Close()
		out, err := r.DecodeAll(b, make([]byte, 0, size))
		if err != nil || int64(len(out)) != size {
			return nil, wrong
		}
		return out, nil
	case format.Gzip, format.Brotli:
		var r io.Reader = brotli.NewReader(bytes.NewReader(b))
		if codec == format.Gzip {
			var err error
			if r, err = gzip.NewReader(bytes.NewReader(b)); err != nil {
				return nil, wrong
			}
		}
		out := make([]byte, size+1)
		if n, err := io.ReadFull(r, out); err != io.ErrUnexpectedEOF && err != io.EOF || int64(n) != size {
			return nil, wrong
		}
		return out[:size], nil
	}
	return nil, fmt.Errorf("the compression %s is not read", codec)
}

// unmarshalThrift refuses fields of another type than they should have. Unmarshal goes on
// amid their values and takes these for lengths, as parquet-go would later.
func unmarshalThrift(b []byte, v any) error {
	d := thrift.NewDecoder(new(thrift.CompactProtocol).NewReader(bytes.NewReader(b)))
	d.SetStrict(true)
	return d.Decode(v)
}

// walkThrift walks over the struct of Thrift's compact protocol that b begins with, in which no
// length may be more than what is left of the bytes. It returns how many bytes the struct has,
// and at most how much memory its lists, structs and strings take.
func walkThrift(b []byte) (size int, decoded int64, err error) {
	left := bytes.NewReader(b)
	w := thriftWalk{left: left, Reader: new(thrift.CompactProtocol).NewReader(left)}
	if w.value(thrift.STRUCT, 0) != nil {
		return 0, 0, errParquet
	}
	return len(b) - left.Len(), w.decoded, nil
}

type thriftWalk struct {
	thrift.Reader
	left    *bytes.Reader // of the reader
	decoded int64
}

func (w *thriftWalk) value(kind thrift.Type, depth int) error {
	if depth > 16 {
		return errParquet
	}
	switch kind {
	case thrift.TRUE, thrift.FALSE, thrift.I8:
		_, err := w.ReadInt8()
		return err
	case thrift.I16, thrift.I32, thrift.I64:
		_, err := w.ReadInt64()
		return err
	case thrift.DOUBLE:
		return w.skip(8)
	case thrift.BINARY:
		n, err := w.ReadLength()
		if err != nil {
			return err
		}
		w.decoded += 32 + 2*int64(n)
		return w.skip(n)
	case thrift.LIST, thrift.SET:
		l, err := w.ReadList()
		if err != nil {
			return err
		}
		return w.items(l.Size, depth, l.Type)
	case thrift.MAP:
		m, err := w.ReadMap()
		if err != nil {
			return err
		}
		return w.items(m.Size, depth, m.Key, m.Value)
	case thrift.STRUCT:
		return w.fields(depth)
	}
	return errParquet
}

// skip goes over n bytes.
func (w *thriftWalk) skip(n int) error {
	if n > w.left.Len() {
		return errParquet
	}
	_, err := w.left.Seek(int64(n), io.SeekCurrent)
	return err
}

// items goes over n values of each of the kinds in turn.
func (w *thriftWalk) items(n int32, depth int, kinds ...thrift.Type) error {
	if int(n) > w.left.Len() { // each takes a byte at least
		return errParquet
	}
	w.decoded += 16 * int64(n)
	for range n {
		for _, kind := range kinds {
			if kind == thrift.STRUCT {
				w.decoded += 1 << 10 // the largest of the footer's takes less
			}
			if err := w.value(kind, depth+1); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *thriftWalk) fields(depth int) error {
	w.decoded += 128 // one that is pointed to
	for {
		f, err := w.ReadField()
		if err != nil || f.Type == thrift.STOP {
			return err
		}
		if f.Type == thrift.TRUE || f.Type == thrift.FALSE { // a boolean field is its kind
			continue
		}
		if err := w.value(f.Type, depth+1); err != nil {
			return err
		}
	}
}

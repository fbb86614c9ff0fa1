package data

import (
	"bytes"
	"cmp"
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

// parquetTable is what was found of a Parquet file.
type parquetTable struct {
	file        io.ReaderAt // without the columns that cannot be read
	size        int64       // of that
	columns     []parquetColumn
	rows, bytes int64 // bytes are what reading takes at a time beside its rows
}

// parquetColumn is a column of a table.
type parquetColumn struct {
	name   string
	at     int    // among those that can be read; -1 if it is none of them
	unread string // why it is not read; empty where it is
}

// checkParquet looks at a table, but for columns that cannot be read. It claims from mem what
// it takes itself.
func checkParquet(b []byte, mem *budget.Reservation) (*parquetTable, error) {
	if len(b) < 12 || string(b[:4]) != "PAR1" || string(b[len(b)-4:]) != "PAR1" {
		return nil, errors.New("not a Parquet file, or a truncated one")
	}
	t := &parquetTable{}
	size := int64(binary.LittleEndian.Uint32(b[len(b)-8:]))
	if size > int64(len(b)-12) {
		return nil, errParquet
	}
	footer := b[int64(len(b)-8)-size : len(b)-8]
	_, decoded, err := walkThrift(footer)
	if err != nil {
		return nil, err
	}
	t.bytes = 2 * decoded // the library's and the one here
	if err := mem.Grow(t.bytes); err != nil {
		return nil, err
	}
	defer mem.Shrink(2 * decoded)
	var meta format.FileMetaData
	if err := unmarshalThrift(footer, &meta); err != nil {
		return nil, err
	}
	read, leaves, err := t.read(meta.Schema)
	if err != nil {
		return nil, err
	}
	widest := make([]int64, len(read))
	for g, group := range meta.RowGroups {
		if len(group.Columns) != leaves || group.NumRows < 0 || group.NumRows > meta.NumRows-t.rows {
			return nil, errParquet
		}
		t.rows += group.NumRows
		for i, x := range read {
			chunk := &group.Columns[x.leaf].MetaData
			if chunk.NumValues != group.NumRows || chunk.Type != *x.Type || chunk.Codec != meta.RowGroups[0].Columns[x.leaf].MetaData.Codec {
				return nil, errParquet
			}
			c := parquetChunk{file: b, meta: chunk, mem: mem, optional: x.RepetitionType != nil && *x.RepetitionType == format.Optional}
			if err := c.check(); err != nil {
				return nil, fmt.Errorf("the column %q, row group %d: %w", x.Name, g+1, err)
			}
			widest[i] = max(widest[i], c.dictionary+c.widest)
		}
	}
	if t.rows != meta.NumRows {
		return nil, errParquet
	}
	const reader = 16 << 10 // of a column: its buffer
	for _, n := range widest {
		t.bytes += n + reader
	}
	if t.file, t.size = bytes.NewReader(b), int64(len(b)); len(read) == leaves {
		return t, nil
	}
	meta.Schema, meta.ColumnOrders = meta.Schema[:1], nil
	for _, x := range read {
		meta.Schema = append(meta.Schema, *x.SchemaElement)
	}
	meta.Schema[0].NumChildren = int32(len(read))
	for g := range meta.RowGroups {
		group := &meta.RowGroups[g]
		chunks := group.Columns
		group.Columns, group.SortingColumns = nil, nil
		for _, x := range read {
			group.Columns = append(group.Columns, chunks[x.leaf])
		}
	}
	if footer, err = thrift.Marshal(new(thrift.CompactProtocol), &meta); err != nil {
		return nil, err
	}
	whole := spliced{b[:int64(len(b)-8)-size], append(binary.LittleEndian.AppendUint32(footer, uint32(len(footer))), "PAR1"...)}
	t.file, t.size = whole, int64(len(whole.head)+len(whole.tail))
	return t, nil
}

// read lists the columns of a schema, and returns those that are read; leaves is how many the
// file has with all that is nested.
func (t *parquetTable) read(schema []format.SchemaElement) (read []parquetLeaf, leaves int, err error) {
	if len(schema) < 2 {
		return nil, 0, errors.New("there are no columns")
	}
	for rest := schema[1:]; len(rest) > 0; {
		x, c := parquetLeaf{&rest[0], leaves}, parquetColumn{name: rest[0].Name, at: -1}
		for open := 1; open > 0; open-- { // what is nested follows
			if len(rest) == 0 || rest[0].NumChildren < 0 || int(rest[0].NumChildren) >= len(rest) {
				return nil, 0, errParquet
			}
			if open += int(rest[0].NumChildren); rest[0].NumChildren == 0 {
				leaves++
			}
			rest = rest[1:]
		}
		half := x.LogicalType != nil && x.LogicalType.Float16 != nil && x.TypeLength != nil && *x.TypeLength == 2
		switch {
		case x.NumChildren != 0 || x.RepetitionType != nil && *x.RepetitionType == format.Repeated:
			c.unread = fmt.Sprintf("the column %q is nested", c.name)
		case x.Type == nil || *x.Type == format.FixedLenByteArray && !half || *x.Type == format.Int96:
			c.unread = fmt.Sprintf("the column %q is of type %v, which is not read: write numbers or texts", c.name, x.Type)
		case x.LogicalType != nil && x.LogicalType.Unknown != nil: // of gaps alone
		default:
			c.at, read = len(read), append(read, x)
		}
		t.columns = append(t.columns, c)
	}
	switch {
	case len(t.columns) != int(schema[0].NumChildren):
		err = errParquet
	case read == nil:
		err = errors.New(cmp.Or(t.columns[0].unread, "all columns are empty"))
	}
	return read, leaves, err
}

// parquetLeaf is a column of values, and which of those it is.
type parquetLeaf struct {
	*format.SchemaElement
	leaf int
}

// spliced is a file with another end.
type spliced struct{ head, tail []byte }

func (s spliced) ReadAt(p []byte, at int64) (n int, err error) {
	for _, part := range [][]byte{s.head, s.tail} {
		if n < len(p) && at < int64(len(part)) {
			k := copy(p[n:], part[at:])
			n, at = n+k, at+int64(k)
		}
		at -= int64(len(part))
	}
	if n < len(p) {
		err = io.EOF
	}
	return n, err
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

package cudaemulator

import (
	"fmt"
	"regexp"
	"strings"
)

// What a compiler made of the kernels can be emulated, too: PTX becomes C, a statement
// for each instruction, registers variables, and accesses to global memory are held against the
// same ranges (those to shared memory are not: the sources' are). So a test sees what the compiler moved or left out, as reads across a barrier. It knows
// the instructions that kernels.ptx has; any other is an error.

// ptxType is a type of PTX: its C type, that of the same width that registers have, and bytes.
type ptxType struct {
	c, register string
	bytes       int
}

var ptxTypes = map[string]ptxType{
	"pred": {"_Bool", "_Bool", 1},
	"s8":   {"signed char", "unsigned short", 1},
	"b16":  {"unsigned short", "unsigned short", 2}, "u16": {"unsigned short", "unsigned short", 2}, "s16": {"short", "unsigned short", 2},
	"b32": {"unsigned", "unsigned", 4}, "u32": {"unsigned", "unsigned", 4}, "s32": {"int", "unsigned", 4},
	"b64": {"u64", "u64", 8}, "u64": {"u64", "u64", 8}, "s64": {"i64", "u64", 8},
	"f32": {"float", "float", 4}, "f64": {"double", "double", 8},
	"b8": {"unsigned char", "unsigned char", 1},
}

// ptxHead is what the functions need.
const ptxHead = `#include "emulator.h"
#include <string.h>
typedef unsigned long long u64;
typedef long long i64;
static inline float f32(unsigned b) { float f; memcpy(&f, &b, 4); return f; }
static inline unsigned b32(float f) { unsigned b; memcpy(&b, &f, 4); return b; }
static inline double f64(u64 b) { double f; memcpy(&f, &b, 8); return f; }
static inline u64 b64(double f) { u64 b; memcpy(&b, &f, 8); return b; }
static inline int rzi(double x) { return x != x ? 0 : x >= 2147483647.0 ? 2147483647 : x <= -2147483648.0 ? -2147483647 - 1 : (int)x; }
static inline unsigned bfe_u32(unsigned a, unsigned at, unsigned n) { return n == 0 || at > 31 ? 0 : a >> at & (n > 31 ? ~0u : (1u << n) - 1); }
static inline int bfe_s32(unsigned a, unsigned at, unsigned n) { return n == 0 ? 0 : (int)(a << (32 - at - n)) >> (32 - n); }
static inline int lower(int *p, int v) { int old = *p; emu_lower(p, v, "atom"); return old; }
`

// ptxSpecial are the registers that say where a thread is.
var ptxSpecial = map[string]string{
	"%tid.x": "emu_thread()", "%ntid.x": "emu_width()",
	"%ctaid.x": "emu_block(0)", "%ctaid.y": "emu_block(1)", "%ctaid.z": "emu_block(2)",
	"%nctaid.x": "emu_blocks(0)", "%nctaid.y": "emu_blocks(1)", "%nctaid.z": "emu_blocks(2)",
}

// ptxCompare are the comparisons; those of unordered operands are true of NaN.
var ptxCompare = map[string]string{
	"eq": "a == b", "ne": "a != b && a == a && b == b", "lt": "a < b", "le": "a <= b", "gt": "a > b", "ge": "a >= b",
	"equ": "!(a < b || a > b)", "neu": "!(a == b)", "ltu": "!(a >= b)", "leu": "!(a > b)", "gtu": "!(a <= b)", "geu": "!(a < b)",
	"nan": "a != a || b != b",
}

// ptxArithmetic are instructions whose operands and result are of the type at their end, by what
// comes before it. Integers are computed as unsigned where the bits are the same, since C leaves overflow open.
var ptxArithmetic = map[string]string{
	"add": "a + b", "add.rn": "a + b", "sub": "a - b", "sub.rn": "a - b", "mul.rn": "a * b", "mul.lo": "a * b", "mad.lo": "a * b + c",
	"div.rn": "a / b", "div": "a / b", "rem": "a % b", "rcp.rn": "1 / a", "neg": "-a", "not": "~a",
	"and": "a & b", "or": "a | b", "xor": "a ^ b", "min": "a < b ? a : b", "max": "a > b ? a : b", "mov": "a",
}

var (
	ptxEntry    = regexp.MustCompile(`\.visible \.entry (\w+)\(([^)]*)\)[^{]*\{`)
	ptxParam    = regexp.MustCompile(`\.param \.(\w+) `)
	ptxRegister = regexp.MustCompile(`^%(p|rs|rd|r|fd|f)(\d+)$`)
	ptxDeclared = regexp.MustCompile(`^\.reg \.\w+\s+%(\w+)<(\d+)>$`)
	ptxShared   = regexp.MustCompile(`^\.shared \.align \d+ \.(\w+) (\S+?)(?:\[(\d+)\])?$`)
	ptxAddress  = regexp.MustCompile(`^\[([^+\]]+)(?:\+(-?\d+))?\]$`)
	ptxClass    = map[string]string{"p": "pred", "rs": "b16", "r": "b32", "rd": "b64", "f": "f32", "fd": "f64"}
	ptxWord     = regexp.MustCompile(`\b[abc]\b`)
)

// value is an operand as a C expression of a type.
func value(operand, typ string) string {
	t := ptxTypes[typ]
	cast := func(x string) string { return "(" + t.c + ")" + x }
	if m := ptxRegister.FindStringSubmatch(operand); m != nil {
		x := fmt.Sprintf("%s_[%s]", m[1], m[2])
		switch class := ptxClass[m[1]]; {
		case class == "f32" && typ != "f32":
			return cast("b32(" + x + ")")
		case class == "f64" && typ != "f64":
			return cast("b64(" + x + ")")
		case class == "b32" && typ == "f32", class == "b64" && typ == "f64":
			return typ + "(" + x + ")"
		default:
			return cast(x)
		}
	}
	switch x, ok := ptxSpecial[operand]; {
	case ok:
		return x
	case strings.HasPrefix(operand, "0f"):
		return "f32(0x" + operand[2:] + "u)"
	case strings.HasPrefix(operand, "0d"):
		return "f64(0x" + operand[2:] + "ull)"
	case strings.HasPrefix(operand, "_") || operand == "registers":
		return "(u64)" + name(operand)
	}
	return cast("(" + operand + "ll)")
}

// name is a symbol's in C.
func name(symbol string) string { return strings.ReplaceAll(symbol, "$", "S") }

// set assigns an expression of a type to a register.
func set(register, typ, x string) string {
	m := ptxRegister.FindStringSubmatch(register)
	if m == nil {
		return "#error no register " + register
	}
	class := ptxClass[m[1]]
	switch {
	case class == "f32" && typ != "f32":
		x = "f32(" + x + ")"
	case class == "f64" && typ != "f64":
		x = "f64(" + x + ")"
	case class == "b32" && typ == "f32", class == "b64" && typ == "f64":
		x = class + "(" + x + ")"
	}
	return fmt.Sprintf("%s_[%s] = (%s)(%s);", m[1], m[2], ptxTypes[class].register, x)
}

// instruction is a PTX instruction in C, "" if it is none that is known.
func instruction(op string, args []string) string {
	parts := strings.Split(op, ".")
	typ := parts[len(parts)-1]
	kind := strings.Join(parts[:len(parts)-1], ".")
	// of puts operands from the second on in the place of a, b and c.
	of := func(expression, typ string) string {
		return ptxWord.ReplaceAllStringFunc(expression, func(w string) string {
			if i := int(w[0]-'a') + 1; i < len(args) {
				return value(args[i], typ)
			}
			return w
		})
	}
	bits := fmt.Sprint("b", 8*ptxTypes[typ].bytes)
	switch parts[0] {
	case "ret":
		return "return;"
	case "bra":
		return "goto " + args[0] + ";"
	case "bar":
		if parts[1] == "warp" {
			return "emu_warp_barrier();"
		}
		return "emu_barrier();"
	case "shfl": // of float32, as the kernels have it
		return set(args[0], "f32", fmt.Sprintf("emu_warp_xor(%s, %s)", value(args[1], "f32"), value(args[2], "s32")))
	case "vote":
		return set(args[0], "b32", "emu_warp_ballot("+value(args[1], "pred")+")")
	case "atom":
		m := ptxAddress.FindStringSubmatch(args[1])
		return set(args[0], "s32", fmt.Sprintf("lower((int *)(%s), %s)", value(m[1], "u64"), value(args[2], "s32")))
	case "ld", "st":
		return access(parts, args)
	case "cvta":
		return set(args[0], "u64", value(args[1], "u64"))
	case "cvt":
		to, from := parts[len(parts)-2], typ
		x := value(args[1], from)
		if parts[1] == "rzi" {
			x = "rzi(" + x + ")"
		}
		return set(args[0], to, fmt.Sprintf("(%s)%s", ptxTypes[to].c, x))
	case "setp":
		if x, ok := ptxCompare[parts[1]]; ok {
			return set(args[0], "pred", of(x, typ))
		}
	case "selp":
		return set(args[0], typ, fmt.Sprintf("%s ? %s : %s", value(args[3], "pred"), value(args[1], typ), value(args[2], typ)))
	case "fma":
		f := "__builtin_fma"
		if typ == "f32" {
			f += "f"
		}
		return set(args[0], typ, of(f+"(a, b, c)", typ))
	case "sqrt":
		return set(args[0], typ, of(map[string]string{"f32": "__builtin_sqrtf(a)", "f64": "__builtin_sqrt(a)"}[typ], typ))
	case "popc":
		return set(args[0], "b32", of("__builtin_popcount(a)", "b32"))
	case "bfe":
		return set(args[0], typ, of("bfe_"+typ+"(a, b, c)", "b32"))
	case "shl", "shr": // by as many bits as there are, or more, nothing of it is left
		n, x := value(args[2], "b32"), value(args[1], typ)
		if parts[0] == "shl" {
			x = fmt.Sprintf("%s >= %d ? 0 : %s << %s", n, 8*ptxTypes[typ].bytes, x, n)
		} else if strings.HasPrefix(typ, "s") {
			x = fmt.Sprintf("%s >> (%s >= %d ? %d : %s)", x, n, 8*ptxTypes[typ].bytes, 8*ptxTypes[typ].bytes-1, n)
		} else {
			x = fmt.Sprintf("%s >= %d ? 0 : %s >> %s", n, 8*ptxTypes[typ].bytes, x, n)
		}
		return set(args[0], typ, x)
	case "mul":
		if t := ptxTypes[typ]; parts[1] == "wide" {
			return set(args[0], "b64", of(map[string]string{"s32": "(i64)a * b", "u32": "(u64)a * b"}[typ], typ))
		} else if parts[1] == "hi" {
			return set(args[0], typ, of(fmt.Sprintf("(unsigned __int128)a * b >> %d", 8*t.bytes), typ))
		}
	case "min", "max":
		if typ == "f32" {
			return set(args[0], typ, of("__builtin_f"+parts[0]+"f(a, b)", typ))
		}
	}
	if x, ok := ptxArithmetic[kind]; ok {
		switch {
		case typ == "pred" && parts[0] == "not":
			x = "!a"
		case kind == "add" || kind == "sub" || kind == "mul.lo" || kind == "mad.lo" || kind == "neg":
			if typ[0] == 's' || typ[0] == 'u' {
				typ = bits
			}
		}
		return set(args[0], typ, of(x, typ))
	}
	return ""
}

// access is a load or a store, of one element or of several.
func access(parts, args []string) string {
	typ := parts[len(parts)-1]
	t := ptxTypes[typ]
	at, registers := args[0], args[1:]
	if parts[0] == "ld" {
		at, registers = args[len(args)-1], args[:len(args)-1]
	}
	m := ptxAddress.FindStringSubmatch(at)
	if m == nil {
		return ""
	}
	if parts[1] == "param" {
		return set(registers[0], typ, fmt.Sprintf("*(%s *)p[%s]", t.c, m[1][strings.LastIndex(m[1], "_")+1:]))
	}
	if m[2] == "" {
		m[2] = "0"
	}
	address := fmt.Sprintf("(%s + (u64)%sll)", value(m[1], "u64"), m[2])
	if parts[1] == "global" {
		address = fmt.Sprintf("emu_read((void *)%s, %d, %q)", address, t.bytes*len(registers), strings.Join(parts, "."))
	}
	var c strings.Builder
	fmt.Fprintf(&c, "{ %s *at = (%s *)%s; ", t.c, t.c, address)
	for i, r := range registers {
		if parts[0] == "ld" {
			c.WriteString(set(r, typ, fmt.Sprintf("at[%d]", i)))
		} else {
			fmt.Fprintf(&c, "at[%d] = %s;", i, value(r, typ))
		}
	}
	return c.String() + " }"
}

// fromPTX writes the C file of a module's kernels: what kernelTable writes of sources.
func fromPTX(text string) (string, error) {
	var functions, rows strings.Builder
	entries := ptxEntry.FindAllStringSubmatchIndex(text, -1)
	for _, e := range entries {
		kernel, params := text[e[2]:e[3]], ptxParam.FindAllStringSubmatch(text[e[4]:e[5]], -1)
		body := text[e[1]:]
		body = body[:strings.Index(body, "\n}")]
		var sizes []string
		for _, p := range params {
			sizes = append(sizes, fmt.Sprint(ptxTypes[p[1]].bytes))
		}
		fmt.Fprintf(&functions, "static void %s(void **p) {\n", kernel)
		if strings.Contains(body, "registers") {
			functions.WriteString("char *registers = emu_dynamic();\n")
		}
		for line := range strings.Lines(body) {
			line, _, _ = strings.Cut(line, "//")
			line = strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), ";"))
			c, err := statement(line)
			if err != nil {
				return "", fmt.Errorf("%s: %w", kernel, err)
			}
			functions.WriteString(c)
		}
		fmt.Fprintf(&functions, "}\nstatic const unsigned char bytes_%s[] = {%s};\n", kernel, strings.Join(sizes, ", "))
		fmt.Fprintf(&rows, "\t{%q, %s, %d, bytes_%s},\n", kernel, kernel, len(params), kernel)
	}
	if len(entries) == 0 {
		return "", fmt.Errorf("the PTX has no kernel")
	}
	return fmt.Sprintf("%s\n%s\nconst struct emu_kernel emu_kernels[] = {\n%s};\nconst int emu_kernel_count = sizeof emu_kernels / sizeof emu_kernels[0];\n", ptxHead, &functions, &rows), nil
}

// statement is a line of PTX in C.
func statement(line string) (string, error) {
	if line == "" || strings.HasPrefix(line, ".pragma") {
		return "", nil
	}
	if label, ok := strings.CutSuffix(line, ":"); ok {
		return label + ":;\n", nil
	}
	if m := ptxDeclared.FindStringSubmatch(line); m != nil {
		return fmt.Sprintf("%s %s_[%s];\n", ptxTypes[ptxClass[m[1]]].register, m[1], m[2]), nil
	}
	if m := ptxShared.FindStringSubmatch(line); m != nil {
		count := m[3]
		if count == "" {
			count = "1"
		}
		return fmt.Sprintf("char *%s = emu_shared(%d * %s);\n", name(m[2]), ptxTypes[m[1]].bytes, count), nil
	}
	guard := ""
	if strings.HasPrefix(line, "@") {
		predicate, rest, _ := strings.Cut(line[1:], " ")
		negated := ""
		if predicate[0] == '!' {
			negated, predicate = "!", predicate[1:]
		}
		guard, line = "if ("+negated+value(predicate, "pred")+") ", strings.TrimSpace(rest)
	}
	op, rest, _ := strings.Cut(strings.ReplaceAll(line, "\t", " "), " ")
	var args []string
	for a := range strings.SplitSeq(strings.NewReplacer("{", "", "}", "").Replace(rest), ",") {
		args = append(args, strings.TrimSpace(a))
	}
	c := instruction(op, args)
	if c == "" {
		return "", fmt.Errorf("the emulator does not know %q", line)
	}
	return guard + c + "\n", nil
}

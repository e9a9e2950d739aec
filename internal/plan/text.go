package plan

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// byteUnits are decimal (R169).
var byteUnits = []string{"B", "kB", "MB", "GB", "TB", "PB", "EB"}

// Bytes writes bytes in decimal units with four digits: 3.072 MB.
func Bytes(v float64) string { return rounded(v, 4) }

// rounded writes bytes with a number of digits.
func rounded(v float64, digits int) string {
	i := 0
	for ; i < len(byteUnits)-1 && math.Abs(v) >= 1000-0.5*math.Pow10(3-digits); i++ {
		v /= 1000
	}
	decimals := digits - 1
	for limit := 10.0; decimals > 0 && math.Abs(v) >= limit; limit *= 10 {
		decimals--
	}
	if i == 0 && v == math.Trunc(v) {
		decimals = 0
	}
	return strconv.FormatFloat(v, 'f', decimals, 64) + " " + byteUnits[i]
}

// ParseBytes reads a number of bytes with a decimal unit, or without one: 1TB, 700 GB, 1024.
func ParseBytes(text string) (float64, error) {
	number, factor := strings.TrimSpace(text), 1.0
	for i := len(byteUnits) - 1; i >= 0; i-- {
		if rest, ok := strings.CutSuffix(strings.ToLower(number), strings.ToLower(byteUnits[i])); ok {
			number, factor = strings.TrimSpace(rest), math.Pow(1000, float64(i))
			break
		}
	}
	v, err := strconv.ParseFloat(number, 64)
	if err != nil || math.IsNaN(v) || math.IsInf(v, 0) || v < 0 {
		return 0, fmt.Errorf("%q: want bytes such as 1024, 700GB or 1TB (decimal)", text)
	}
	return v * factor, nil
}

// Number writes a number with at most three decimals, and commas: 360,000.
func Number(v float64) string {
	text := grouped(v, 3)
	return strings.TrimSuffix(strings.TrimRight(text, "0"), ".")
}

// grouped writes 360000 as 360,000.
func grouped(v float64, decimals int) string {
	text := strconv.FormatFloat(math.Abs(v), 'f', decimals, 64)
	whole, rest, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if rest != "" {
		whole += "." + rest
	}
	if v < 0 {
		whole = "-" + whole
	}
	return whole
}

const day = 24 * time.Hour

// Time writes a time in days from two of them on, else as Go does, to the second: 14 days, 1h30m.
func Time(d time.Duration) string {
	if d >= 2*day {
		return Number(math.Round(d.Hours()/24*10)/10) + " days"
	}
	text := d.Round(time.Second).String()
	if strings.HasSuffix(text, "m0s") {
		text = strings.TrimSuffix(text, "0s")
	}
	if strings.HasSuffix(text, "h0m") {
		text = strings.TrimSuffix(text, "0m")
	}
	return text
}

// ParseTime reads a time as Go writes it, or in days: 14d, 336h.
func ParseTime(text string) (time.Duration, error) {
	if number, ok := strings.CutSuffix(text, "d"); ok {
		v, err := strconv.ParseFloat(number, 64)
		if err != nil || math.IsNaN(v) || v < 0 || v >= Never.Hours()/24 {
			return 0, fmt.Errorf("%q: want a time such as 14d or 36h", text)
		}
		return time.Duration(v * float64(day)), nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d < 0 {
		return 0, fmt.Errorf("%q: want a time such as 14d or 36h", text)
	}
	return d, nil
}

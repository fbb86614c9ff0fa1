// Package repro
package repro

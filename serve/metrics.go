package serve

import (
	"time"

	"github.com/gsrc-dev/gsrc/infer"
	"github.com/gsrc-dev/gsrc/internal/budget"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
)

// metrics are what Prometheus scrapes.
type metrics struct {
	registry *prometheus.Registry
	requests *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
	underWay prometheus.Gauge
	batch    prometheus.Histogram
	refused  *prometheus.CounterVec
}

func newMetrics() *metrics {
	m := &metrics{
		registry: prometheus.NewRegistry(),
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gsrc_requests_total", Help: "Inference requests that were answered, by model, protocol (http or grpc) and code."},
			[]string{"model", "protocol", "code"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: "gsrc_request_duration_seconds", Help: "Time from the headers of an inference request to its answer.",
			Buckets: []float64{.0002, .0005, .001, .002, .005, .01, .02, .05, .1, .2, .5, 1, 2, 5, 10, 30}}, []string{"model", "protocol"}),
		underWay: prometheus.NewGauge(prometheus.GaugeOpts{Name: "gsrc_requests_under_way", Help: "Inference requests that are being answered."}),
		batch: prometheus.NewHistogram(prometheus.HistogramOpts{Name: "gsrc_batch_nodes", Help: "Nodes that were answered for together.",
			Buckets: prometheus.ExponentialBuckets(1, 2, 12)}),
		refused: prometheus.NewCounterVec(prometheus.CounterOpts{Name: "gsrc_refusals_total", Help: "Requests that were refused, bodies and answers that were cut off (slow) and connections that were closed (connections), by reason."},
			[]string{"reason"}),
	}
	m.registry.MustRegister(m.requests, m.seconds, m.underWay, m.batch, m.refused,
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
	return m
}

func (m *metrics) request(model, protocol, code string, took time.Duration) {
	m.requests.WithLabelValues(model, protocol, code).Inc()
	m.seconds.WithLabelValues(model, protocol).Observe(took.Seconds())
}

// dropped counts the lines that were not logged.
func (m *metrics) dropped(l *LogWriter) {
	if l != nil {
		m.registry.MustRegister(prometheus.NewCounterFunc(prometheus.CounterOpts{Name: "gsrc_log_lines_dropped_total", Help: "Lines of the log that were dropped because the log was not read in time."},
			func() float64 { return float64(l.Dropped()) }))
	}
}

// memory registers the gauges of what is held.
func (m *metrics) memory(b *budget.Budget, in *intake, cs *connections) {
	for _, g := range []struct {
		name, help string
		value      func() float64
	}{
		{"gsrc_memory_limit_bytes", "Memory that the server may take.", func() float64 { return float64(b.Total()) }},
		{"gsrc_memory_held_bytes", "Memory that is held for the models, the graph, and requests.", func() float64 { return float64(b.Used()) }},
		{"gsrc_bodies_coming", "Bodies of requests that have not come whole.", func() float64 { n, _ := in.unfinished(); return float64(n) }},
		{"gsrc_connections", "Connections of clients.", func() float64 { return float64(cs.number()) }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.name, Help: g.help}, g.value))
	}
}

// graph has the state of the online graph told.
func (m *metrics) graph(r *infer.Graph) {
	for _, g := range []struct {
		name, help string
		value      func(*infer.Snapshot) float64
	}{
		{"gsrc_graph_version", "Version of the online graph.", func(s *infer.Snapshot) float64 { return float64(s.Version) }},
		{"gsrc_graph_nodes", "Nodes of the online graph.", func(s *infer.Snapshot) float64 { return float64(s.Nodes()) }},
		{"gsrc_graph_edges", "Edges of the online graph, each undirected one once.", func(s *infer.Snapshot) float64 { return float64(s.Edges()) }},
	} {
		m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: g.name, Help: g.help}, func() float64 { return g.value(r.Snapshot()) }))
	}
	m.registry.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: "gsrc_graph_versions_held", Help: "Versions of the online graph in memory."}, func() float64 { return float64(r.Versions()) }))
}

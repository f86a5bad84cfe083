module helenus/compat/apps/jaeger

go 1.24.6

require github.com/jaegertracing/jaeger v1.76.0

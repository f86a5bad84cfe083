module helenus/compat/apps/temporal

go 1.26.2

require go.temporal.io/server v1.31.0

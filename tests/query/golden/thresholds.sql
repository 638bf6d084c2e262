SELECT COUNT(*) WHERE wind_ms > MEAN(wind_ms) + 2 * STD(wind_ms) AND rh BETWEEN QUANTILE(rh, 0.1) AND 90

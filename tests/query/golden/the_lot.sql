SELECT MEAN(temp_c), QUANTILE(rh, 0.9) AS high
WHERE location LIKE '6g%' AND (time >= '2025-01-01' AND time < '2025-02-01') AND wind_ms > 8
GROUP BY CELL(4), BUCKET('1mo') HAVING COUNT(*) > 24 ORDER BY high DESC, CELL(4) LIMIT 10

SELECT CARDINALITY(station), CARDINALITY(CELL(4)) AS cells, CARDINALITY(BIN(rh), BIN(temp_c, 5)),
  CARDINALITY(rh) FILTER (WHERE location LIKE '6g%'), FREQUENCY(temp_c = 21 AND rh BETWEEN 80 AND 90),
  CONTAINS(temp_c > 35), CONTAINS('A652'), CONTAINS(station = 'it''s'),
  COMMON(station, location LIKE '6g%', time < '2025-02-01') / CARDINALITY(station) AS share,
  ONLY("the one", location LIKE '6g%', location LIKE '6f%', location LIKE '6e%')
WHERE time >= '2025-01-01'
GROUP BY BUCKET('1y')
HAVING CARDINALITY(station) > 3
ORDER BY CARDINALITY(station) DESC

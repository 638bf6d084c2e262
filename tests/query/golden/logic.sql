SELECT COUNT(*)
WHERE (rh > 80 OR (temp_c < 0 OR temp_c > 30 AND wind_ms > 8)) AND NOT (rh = 99 OR rh = 100) AND location LIKE '%'

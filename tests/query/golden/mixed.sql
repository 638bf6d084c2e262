SELECT COUNT(*)
WHERE (location LIKE 'd%' OR rh > 80) AND NOT (time >= '2025-01-01' AND time < '2025-02-01' AND temp_c IS NULL) OR time <> '2025-03-01'

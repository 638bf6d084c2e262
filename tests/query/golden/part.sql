SELECT temp_c, "PM2.5" FROM air WHERE location LIKE '6g%' OR time < '2025-02-01'

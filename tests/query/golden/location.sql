SELECT COUNT(*) WHERE location LIKE '6g%'

SELECT COUNT(*) WHERE location IN ('dj', 'dn') AND location = 'DJ7'

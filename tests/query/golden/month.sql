SELECT MEAN(temp_c) WHERE time >= '2025-03-01' AND time < '2025-04-01'

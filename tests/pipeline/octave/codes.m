% Writes codes.mat, the same codes in several forms: octave-cli codes.m (Octave 7.3.0)
B = logical (dec2bin (mod ((1:40)' * 37 + floor ((1:40)' .^ 2 / 3), 4096), 12) - '0');
labels = mod ((1:40)', 3);
B_test = B(1:8, :);
B_train = 2 * double (B(9:40, :)) - 1;
masks = uint8 (255 * B(9:40, :));
y_test = labels(1:8);
y_train = labels(9:40)';
packed_test = uint8 ([B_test(:, 1:8) * 2 .^ (0:7)', B_test(:, 9:12) * 2 .^ (0:3)']);
packed_train = uint8 ([B(9:40, 1:8) * 2 .^ (0:7)', B(9:40, 9:12) * 2 .^ (0:3)']);
hex_train = dec2hex (B(9:40, :) * 2 .^ (11:-1:0)', 3);
hex_test = dec2hex (B_test * 2 .^ (11:-1:0)', 3);
save ('-v7', 'codes.mat', 'B_test', 'B_train', 'masks', 'y_test', 'y_train', 'packed_test', 'packed_train', 'hex_train', 'hex_test');

set encoding utf8
set linetype 1 linecolor rgb '#0072B2' linewidth 2 pointtype 7
set linetype 2 linecolor rgb '#E69F00' linewidth 2 pointtype 5
set linetype 3 linecolor rgb '#009E73' linewidth 2 pointtype 9
set linetype 4 linecolor rgb '#CC79A7' linewidth 2 pointtype 13
set linetype 5 linecolor rgb '#56B4E9' linewidth 2 pointtype 11
set linetype 6 linecolor rgb '#D55E00' linewidth 2 pointtype 4
set linetype 7 linecolor rgb '#F0E442' linewidth 2 pointtype 6
set linetype 8 linecolor rgb '#8C8C8C' linewidth 2 pointtype 8
set grid linetype 1 linecolor rgb '#DDDDDD' linewidth 1
set border linecolor rgb '#444444'
set terminal svg size 700,650 font 'sans,12' background 'white'
set output 'lib/trinity/report/pictures/mixtures.svg'
$series1 << EOD
6288 5804.86789
44544 49805.9325
8816 8607.06048
6304 5804.86789
44544 49805.9325
9008 8607.06048
6338 5804.86789
6422 5836.43985
45275 49805.9325
9015 8607.06048
4992 4970.86176
31744 34840.6093
6944 6336.77136
4965 4970.86176
31470 34840.6093
6994 6336.77136
4691 4970.86176
30411 34840.6093
6583 6089.0518
4612 4970.86176
30376 34840.6093
6583 6089.0518
3848 3655.12979
4357 4780.25076
28934 30208.2127
6131 5211.13047
EOD
$series2 << EOD
4912 4815.14225
39936 43465.2445
7280 6766.96565
4928 4815.14225
40960 43465.2445
7360 6766.96565
4969 4815.14225
40706 43465.2445
7376 6766.96565
4256 3930.99749
26112 29391.0446
5680 5304.99145
4193 3930.99749
26032 29391.0446
5672 5304.99145
4021 3930.99749
26373 29391.0446
5530 5216.10764
3955 3930.99749
26084 29391.0446
5448 5216.10764
4916 4662.79326
EOD
$series3 << EOD
27136 27441.811
26859 27441.811
26695 27441.811
9691 7666.01343
2139 2333.05566
EOD
$series4 << EOD
1712 1631.76441
1686 1631.76441
1611 1631.76441
1633 1631.76441
1575 1614.75701
EOD
$series5 << EOD
2644 2961.20737
2691 2961.20737
EOD
set xlabel 'given tokens per second and GPU' noenhanced
set ylabel 'told tokens per second and GPU' noenhanced
set logscale x
set logscale y
set key outside top center horizontal
set offsets graph 0.03, graph 0.03, graph 0.05, graph 0.05
plot $series1 using 1:2 with points pointsize 0.9 linetype 1 title 'GB300, experts' noenhanced, \
  $series2 using 1:2 with points pointsize 0.9 linetype 2 title 'GB200, experts' noenhanced, \
  $series3 using 1:2 with points pointsize 0.9 linetype 3 title 'B200, experts' noenhanced, \
  $series4 using 1:2 with points pointsize 0.9 linetype 4 title 'H100-80GB, experts' noenhanced, \
  $series5 using 1:2 with points pointsize 0.9 linetype 5 title 'B300, experts' noenhanced
unset output
reset session
set encoding utf8
set linetype 1 linecolor rgb '#0072B2' linewidth 2 pointtype 7
set linetype 2 linecolor rgb '#E69F00' linewidth 2 pointtype 5
set linetype 3 linecolor rgb '#009E73' linewidth 2 pointtype 9
set linetype 4 linecolor rgb '#CC79A7' linewidth 2 pointtype 13
set linetype 5 linecolor rgb '#56B4E9' linewidth 2 pointtype 11
set linetype 6 linecolor rgb '#D55E00' linewidth 2 pointtype 4
set linetype 7 linecolor rgb '#F0E442' linewidth 2 pointtype 6
set linetype 8 linecolor rgb '#8C8C8C' linewidth 2 pointtype 8
set grid linetype 1 linecolor rgb '#DDDDDD' linewidth 1
set border linecolor rgb '#444444'
set terminal pngcairo size 700,650 font 'sans,10' background 'white'
set output 'lib/trinity/report/pictures/mixtures.png'
$series1 << EOD
6288 5804.86789
44544 49805.9325
8816 8607.06048
6304 5804.86789
44544 49805.9325
9008 8607.06048
6338 5804.86789
6422 5836.43985
45275 49805.9325
9015 8607.06048
4992 4970.86176
31744 34840.6093
6944 6336.77136
4965 4970.86176
31470 34840.6093
6994 6336.77136
4691 4970.86176
30411 34840.6093
6583 6089.0518
4612 4970.86176
30376 34840.6093
6583 6089.0518
3848 3655.12979
4357 4780.25076
28934 30208.2127
6131 5211.13047
EOD
$series2 << EOD
4912 4815.14225
39936 43465.2445
7280 6766.96565
4928 4815.14225
40960 43465.2445
7360 6766.96565
4969 4815.14225
40706 43465.2445
7376 6766.96565
4256 3930.99749
26112 29391.0446
5680 5304.99145
4193 3930.99749
26032 29391.0446
5672 5304.99145
4021 3930.99749
26373 29391.0446
5530 5216.10764
3955 3930.99749
26084 29391.0446
5448 5216.10764
4916 4662.79326
EOD
$series3 << EOD
27136 27441.811
26859 27441.811
26695 27441.811
9691 7666.01343
2139 2333.05566
EOD
$series4 << EOD
1712 1631.76441
1686 1631.76441
1611 1631.76441
1633 1631.76441
1575 1614.75701
EOD
$series5 << EOD
2644 2961.20737
2691 2961.20737
EOD
set xlabel 'given tokens per second and GPU' noenhanced
set ylabel 'told tokens per second and GPU' noenhanced
set logscale x
set logscale y
set key outside top center horizontal
set offsets graph 0.03, graph 0.03, graph 0.05, graph 0.05
plot $series1 using 1:2 with points pointsize 0.9 linetype 1 title 'GB300, experts' noenhanced, \
  $series2 using 1:2 with points pointsize 0.9 linetype 2 title 'GB200, experts' noenhanced, \
  $series3 using 1:2 with points pointsize 0.9 linetype 3 title 'B200, experts' noenhanced, \
  $series4 using 1:2 with points pointsize 0.9 linetype 4 title 'H100-80GB, experts' noenhanced, \
  $series5 using 1:2 with points pointsize 0.9 linetype 5 title 'B300, experts' noenhanced
unset output

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
set terminal svg size 700,480 font 'sans,12' background 'white'
set output '.svg'
$bars1 << EOD
1 1
EOD

set boxwidth 0.8
set xrange [0.4:1.6]
set yrange [0:*]
set xtics ('a' 1) rotate by 40 right noenhanced
set bmargin 9
set lmargin 13
set ylabel 's' noenhanced
set key outside top center horizontal
plot $bars1 using 1:2 with boxes linetype 1 linewidth 1 fillstyle solid 0.9 title 'b' noenhanced
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
set terminal pngcairo size 700,480 font 'sans,10' background 'white'
set output '.png'
$bars1 << EOD
1 1
EOD

set boxwidth 0.8
set xrange [0.4:1.6]
set yrange [0:*]
set xtics ('a' 1) rotate by 40 right noenhanced
set bmargin 9
set lmargin 13
set ylabel 's' noenhanced
set key outside top center horizontal
plot $bars1 using 1:2 with boxes linetype 1 linewidth 1 fillstyle solid 0.9 title 'b' noenhanced
unset output

"""Words that may stand for each other when tools are searched for, one group per line; and words that say little."""

COMMON_WORDS = """
a about all also am an and any are as at based be been between by can could did do does don during each for
from give given he hello help here hey hi how i id if im in into is it its just know let like ll make many may
me might more most much my need no not of off ok okay on only or our out over per please re s shall she should
show so some sure t tell than that the their them then there these they this those to under up us use using ve
very via want was we were what when where which who whom whose why will with would yes you your
"""

SYNONYMS = """
create add make new insert generate build
delete remove erase drop clear discard
get fetch retrieve obtain read view show display
find search lookup query locate discover
list enumerate browse
update edit modify change alter adjust
set configure assign
send deliver transmit dispatch
post publish submit share
buy purchase order
book reserve reservation booking schedule
cancel abort revoke
start begin launch run execute
stop halt end terminate kill
open launch
close shut
copy duplicate clone
move transfer relocate
rename retitle
convert transform translate conversion
calculate compute computation estimate determine
compare difference diff versus
analyze analyse analysis inspect examine evaluate
predict forecast projection
check verify validate test
download save export
upload import
combine merge join
split divide separate
sort order rank
count number total
average mean
email mail message
message text chat sms
notify alert notification remind
image picture photo screenshot
film movie
song music track tune
car vehicle automobile
flight airline plane airport
hotel accommodation lodging room stay
restaurant dining eat food
shop store market
price cost fee charge
money currency cash dollar euro yen pound
rate exchange
salary wage income
loan mortgage credit
invest investment portfolio
stock share equity ticker
company business firm organization corporation
employee staff worker
customer client
user account member
person people
doctor physician
medicine drug medication
illness disease condition
weather temperature forecast humidity rain climate
city town place location
address location
near nearby nearest close closest around
distance far
route direction path navigate
map geography
country nation
time hour clock
date day calendar
year annual yearly
month monthly
event appointment meeting
task todo job
ticket issue bug
repository repo project
folder directory
file document
page site website web
url link address
code source
branch fork
pull merge
commit revision
database db sql table
row record entry
column field
log history
error failure exception
password secret credential
key token
server host machine
container docker pod
deploy release rollout
metric statistic stats measurement
chart graph plot diagram
report summary
summarize summary shorten
language translation
speech voice audio
video clip
game match
team club
player athlete
score result
win victory
law legal statute
court lawsuit litigation case
crime offense
book novel
author writer
recipe cook dish meal
calorie nutrition nutritional carb protein
area surface
length size
weight mass
speed velocity
fast quick
big large
small tiny
odds probability chance likelihood
root solution
derivative differentiate
integral integrate
gcd divisor
math mathematics
art artwork painting sculpture
museum gallery exhibition
concert show performance
instrument guitar piano violin
gene dna genetic
cell cellular
species animal
plant tree flower
planet space astronomy
population resident inhabitant
president leader
religion religious christianity buddhism islam
war battle
phone call telephone
house home property estate
rent lease
bus train transit
seat ticket
pay payment transaction
refund reimburse
discount coupon
cart basket
review rating
news headline article
paper publication
school college university
student pupil
course class lesson
grade mark
"""

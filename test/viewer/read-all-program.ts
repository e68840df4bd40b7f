import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { listingsOf } from '../../src/ledger/listings.ts';
import { RecordReader } from '../../src/viewer/read/record-reader.ts';

/** Reads all records of a ledger as the viewer and its lists do, and prints how many there are. */
using ledger = new Ledger(process.argv[2] ?? '', systemClock);
const rows = ledger.records.all('SELECT result FROM trials WHERE result IS NOT NULL');
const reader = new RecordReader(ledger);
for (const { result } of rows) {
  reader.read(String(result));
}
listingsOf(ledger, 1);
console.log(rows.length);

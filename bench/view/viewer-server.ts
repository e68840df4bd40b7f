import { systemClock } from '../../src/base/clock.ts';
import { Ledger } from '../../src/ledger/ledger.ts';
import { Redactor } from '../../src/redaction/redactor.ts';
import { openViewer } from '../../src/viewer/server/viewer.ts';

/** The viewer in its own process. `node viewer-server.ts FOLDER`; writes its URL to the parent. */
const [folder = '.'] = process.argv.slice(2);
const ledger = new Ledger(folder, systemClock);
const viewer = await openViewer({ ledger, redactor: new Redactor([]), clock: systemClock });
process.send?.(viewer.url);
process.once('disconnect', async () => {
  await viewer[Symbol.asyncDispose]();
  ledger[Symbol.dispose]();
});

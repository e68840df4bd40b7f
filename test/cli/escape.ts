// Loaded into an `offsite` of a test (NODE_OPTIONS=--import): throws where nobody catches once the file that
// $ESCAPE names is there.
import { existsSync, rmSync } from 'node:fs';

const file = process.env.ESCAPE ?? '';
const look = () => {
  if (!existsSync(file)) return;
  rmSync(file);
  throw new Error('a defect that was made for a test');
};
setInterval(look, 20).unref();

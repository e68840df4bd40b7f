import { systemClock } from '../../../src/base/clock.ts';
import { ModelLimits } from '../../../src/gateway/limits/model-limits.ts';
import { openGateway } from '../../../src/gateway/open-gateway.ts';
import { Limits } from '../../../src/ledger/limits.ts';
import { ModelConfig } from '../../../src/suite/model-config.ts';
import { askModel } from './ask-model.ts';

/**
 * An agent in its own process: `node agent-process.ts FOLDER URL MOST AT_A_TIME`. It asks from its start
 * until its parent says stop, and then tells its parent what it got.
 */
const [folder = '', url = '', most = '', atATime = ''] = process.argv.slice(2);
const ending = new AbortController();
process.once('message', () => ending.abort());
process.once('disconnect', () => process.exit(1));
const stored = new Limits(folder);
const limits = new ModelLimits(systemClock, stored, (message) => {
  throw new Error(message);
});
const maxParallel = { auto: true, most: Number(most) };
const gateway = openGateway({
  models: { limited: ModelConfig.parse({ wire: 'openai-chat', baseUrl: url, maxParallel }) },
  env: {},
  clock: systemClock,
  limits,
  scripted: () => {
    throw new Error('no scripted model here');
  },
});
const asked = await askModel(gateway, {
  atATime: Number(atATime),
  requests: 5,
  until: ending.signal,
  named: `${process.pid}/`,
});
await gateway[Symbol.asyncDispose]();
limits[Symbol.dispose]();
stored[Symbol.dispose]();
process.send?.(asked, () => process.disconnect());
process.removeAllListeners('disconnect');

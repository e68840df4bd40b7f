import { systemClock } from '../../src/base/clock.ts';
import { settleHeap } from '../../src/base/host-program.ts';
import { permissions } from '../../src/contract/definition.ts';
import { openService } from '../../src/service/service.ts';

/**
 * The service in its own process. `node service-server.ts FOLDER KEY...`; writes its URL to the parent. Each
 * key is of an organization of its own.
 */
settleHeap();
const [dataFolder = '.', ...keys] = process.argv.slice(2);
const service = openService({ dataFolder, clock: systemClock, integrations: [] });
for (const [index, key] of keys.entries())
  service.seedKey(key, { organization: index === 0 ? 'Bench' : `Bench ${index}`, permissions });
process.send?.((await service.listen()).url);
process.once('disconnect', () => void service.close());

import { systemClock } from '../../src/base/clock.ts';
import { permissions } from '../../src/contract/definition.ts';
import { openService } from '../../src/service/service.ts';

/** `node service-program.ts FOLDER KEY`: the service, which tells its parent where it listens. */
const [dataFolder = '', key = ''] = process.argv.slice(2);
const service = openService({ dataFolder, clock: systemClock, integrations: [] });
service.seedKey(key, { organization: 'Local', permissions });
process.send?.((await service.listen()).url);
process.once('disconnect', () => process.exit());

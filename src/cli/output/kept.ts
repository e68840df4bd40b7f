import { embeddedService } from '../../ledger/platform.ts';
import { plural } from '../../text/quantities.ts';

/**
 * Where results are that the service has not shown yet. The embedded service is in the data folder, too.
 *
 * @param shown how the service is written
 */
export function keptText(kept: number, folder: string, service: string, shown = service): string {
  const left =
    service === embeddedService ? '' : ` ${kept === 1 ? 'waits' : 'wait'} to be reported to ${shown}`;
  return `${plural(kept, 'result')} kept in ${folder}${left}`;
}

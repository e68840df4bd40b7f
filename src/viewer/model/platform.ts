import { platformService } from '../../ledger/platform.ts';

/** Whether the embedded service ran the batch itself, as a platform does. */
export function isPlatforms(service: string): boolean {
  return service === platformService;
}

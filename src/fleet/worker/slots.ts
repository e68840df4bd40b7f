import { once } from 'node:events';
import type { ActivitySlotInfo, CustomSlotSupplier } from '@temporalio/worker';

export interface QueueSlots {
  supplier: CustomSlotSupplier<ActivitySlotInfo>;
  /** Tasks of the queue that are held. */
  readonly used: number;
}

/**
 * How many tasks a worker holds at a time, over all queues that it polls. Each queue has one poll in progress
 * while there is room, so a worker may exceed this number by one task for each queue beyond the first.
 */
export class Slots {
  readonly #most: number;
  readonly #changed = new EventTarget();
  #used = 0;
  #isHeld = false;

  constructor(most: number) {
    this.#most = most;
  }

  /** Lets no poll begin while it is held. Polls in progress may still bring a task each. */
  set isHeld(isHeld: boolean) {
    this.#isHeld = isHeld;
    this.#changed.dispatchEvent(new Event('change'));
  }

  /** The slots as one queue sees them. */
  ofQueue(): QueueSlots {
    let isPolling = false;
    let used = 0;
    const change = (work: () => void) => {
      work();
      this.#changed.dispatchEvent(new Event('change'));
    };
    const supplier: CustomSlotSupplier<ActivitySlotInfo> = {
      type: 'custom',
      reserveSlot: async (_context, signal) => {
        while (isPolling || this.#isHeld || this.#used >= this.#most)
          await once(this.#changed, 'change', { signal });
        isPolling = true;
        return {};
      },
      tryReserveSlot: () => null,
      markSlotUsed: () =>
        change(() => {
          isPolling = false;
          used++;
          this.#used++;
        }),
      releaseSlot: ({ slotInfo }) =>
        change(() => {
          if (!slotInfo) {
            isPolling = false;
            return;
          }
          used--;
          this.#used--;
        }),
    };
    return {
      supplier,
      get used() {
        return used;
      },
    };
  }
}

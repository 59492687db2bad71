"""What a browser shows: pages made here, without a build step and without anything from elsewhere."""
